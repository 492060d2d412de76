"""The other workflows of a project that is run without a server: found when a task asks for one of them."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from pathlib import Path

from headrace.actions.parts import Parts
from headrace.actions.private_projects import ensure_private_project
from headrace.clock import to_micros
from headrace.errors import DefinitionError
from headrace.projects import Discovery, ParsedFile, find_files, parse_files
from headrace.store import Transaction, save_file


class Neighbours:
    """Saves the files of a folder of local runs, once. Files that cannot be loaded are left out: nobody ran them."""

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
                # Nor those that define what another file has defined.
                with suppress(DefinitionError):
                    self._parts.store.transact(partial(self._save, parsed=parsed))
        return True

    def _save(self, tx: Transaction, parsed: ParsedFile) -> None:
        now = to_micros(self._parts.clock.now())
        project_id = ensure_private_project(tx, self._root, now)
        save_file(tx, project_id, parsed.file, parsed.digest, parsed.workflows, now, parsed.content)
