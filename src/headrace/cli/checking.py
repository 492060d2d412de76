"""Loads files as the engine would, to look at the outcome."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from headrace.authoring import language_of
from headrace.definition import digest
from headrace.errors import LoadError
from headrace.projects import Discovery, ParsedFile, find_files, parse_files
from headrace.settings import ParserSettings


class Checked(NamedTuple):
    """One file after loading."""

    shown: str
    """The path as people wrote it."""
    root: Path
    parsed: ParsedFile


def check_paths(paths: Iterable[str], settings: ParserSettings) -> Iterator[Checked]:
    """Load every file that is named or lies in a named folder, in the order in which they were named."""
    discovery = Discovery(settings.safe_mode, settings.ignore_syntax)
    for path in paths:
        folder = Path(path)
        if folder.is_dir():
            yield from _load(folder, find_files(folder, discovery), settings)
        elif folder.is_file():
            language_of(folder.name)
            yield from _load(folder.parent, [folder.name], settings)
        else:
            raise LoadError(f"expected a workflow file or a folder, but `{path}` does not exist")


def _load(root: Path, files: Sequence[str], settings: ParserSettings) -> Iterator[Checked]:
    loaded = parse_files(
        root,
        files,
        processes=min(settings.processes, max(1, len(files))),
        timeout_seconds=settings.timeout_seconds,
        memory_mb=settings.memory_mb,
    )
    by_file = {one.file: one for one in loaded}
    for file in files:
        yield Checked(str(root / file), root, by_file[file])


def describe(one: Checked) -> dict[str, Any]:
    """What would be saved, as JSON: the whole definitions, or the error."""
    error = one.parsed.error
    return {
        "file": one.shown,
        "error": None if error is None else msgspec.to_builtins(error),
        "workflows": [
            {"name": workflow.name, "digest": digest(workflow), "definition": msgspec.to_builtins(workflow)}
            for workflow in one.parsed.workflows
        ],
    }
