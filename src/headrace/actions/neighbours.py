"""The other workflows of a project that is run without a server: found when a task asks for one of them."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from headrace.actions.parts import Parts
from headrace.clock import to_micros
from headrace.projects import Discovery, ParsedFile, find_files, parse_files
from headrace.store import Transaction, ensure_project, save_file


class Neighbours:
    """Saves the files of a folder, once. Files that cannot be loaded are left out: they are not what was run."""

    def __init__(self, parts: Parts, root: Path) -> None:
        self._parts = parts
        self._root = root
        self._is_done = False

    def __call__(self) -> bool:
        """Whether there may be more workflows than before."""
        if self._is_done:
            return False
        self._is_done = True
        parser = self._parts.settings.parser
        files = find_files(self._root, Discovery(parser.safe_mode, parser.ignore_syntax))
        for parsed in parse_files(
            self._root,
            files,
            processes=parser.processes,
            timeout_seconds=parser.timeout_seconds,
            memory_mb=parser.memory_mb,
        ):
            if parsed.error is None:
                self._parts.store.transact(partial(self._save, parsed=parsed))
        return True

    def _save(self, tx: Transaction, parsed: ParsedFile) -> None:
        now = to_micros(self._parts.clock.now())
        project_id = ensure_project(tx, self._root.name or "root", str(self._root), now)
        save_file(tx, project_id, parsed.file, parsed.digest, parsed.workflows, now, parsed.content)
