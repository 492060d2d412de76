"""Files that workflow files may read while they are loaded: modules that they import, documents that they include."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from pathlib import Path

MAY_READ = {".py": (".py",), ".zip": (".py",), ".dig": (".dig", ".yml", ".yaml")}
"""What a workflow file of each kind may read. Which of them it does read is not known."""

Looks = dict[str, frozenset[tuple[str, int, int]]]
"""Paths of shared files by suffix, each with when it was changed and how long it is."""

_SUFFIXES = tuple(sorted({suffix for suffixes in MAY_READ.values() for suffix in suffixes}))
_SKIPPED_FOLDERS = ("__pycache__", "node_modules", "site-packages")


def is_readable(path: str) -> bool:
    """Whether a file may be a workflow file or be read by one, judged by its name."""
    return path.endswith((*MAY_READ, *_SUFFIXES))


def looks_of_shared_files(root: Path, workflow_files: Collection[str]) -> Looks:
    """How the files look that are no workflow files themselves."""
    looks: dict[str, set[tuple[str, int, int]]] = {suffix: set() for suffix in _SUFFIXES}
    for path in _walk(root):
        name = path.relative_to(root).as_posix()
        if name not in workflow_files:
            try:
                status = path.stat()
            except OSError:
                continue  # it vanished
            looks[path.suffix].add((name, status.st_mtime_ns, status.st_size))
    return {suffix: frozenset(found) for suffix, found in looks.items()}


def _walk(root: Path) -> Iterator[Path]:
    for folder, folders, files in os.walk(root):
        folders[:] = [
            name
            for name in folders
            if not name.startswith(".")
            and name not in _SKIPPED_FOLDERS
            and not os.path.exists(os.path.join(folder, name, "pyvenv.cfg"))
        ]
        yield from (Path(folder, name) for name in files if name.endswith(_SUFFIXES))
