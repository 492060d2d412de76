"""Loads files as the engine would, to look at the outcome."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from headrace.actions.params import check_params, settled
from headrace.authoring import language_of
from headrace.cli.parsing import found_file
from headrace.definition import Workflow, digest
from headrace.errors import LoadError, UsageError
from headrace.projects import Discovery, ParsedFile, SourceError, find_files, parse_files
from headrace.projects.saving import mistakes_of
from headrace.settings import ParserSettings
from headrace.store import FileError
from headrace.timetable import Slot, timetable_for


class Checked(NamedTuple):
    """One file after loading."""

    shown: str
    """The path as people wrote it."""
    root: Path
    parsed: ParsedFile


def check_paths(paths: Iterable[str], project: str, settings: ParserSettings) -> Iterator[Checked]:
    """Load every file that is named or lies in a named folder, in the order in which they were named.

    A file may be named relative to the project's folder, and a `.dig` file without its suffix.
    """
    discovery = Discovery(settings.safe_mode, settings.ignore_syntax)
    for path in paths:
        folder = Path(path) if Path(path).is_dir() else found_file(path, Path(project))
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


def with_mistakes(files: Sequence[Checked]) -> list[Checked]:
    """The files, with what only saving would find: among others, workflows that two files of a folder define."""
    folders: dict[Path, list[ParsedFile]] = {}
    for one in files:
        folders.setdefault(one.root.absolute(), []).append(one.parsed)
    mistakes = {root: mistakes_of(parsed) for root, parsed in folders.items()}
    return [_refused(one, mistakes[one.root.absolute()].get(one.parsed.file)) for one in files]


def _refused(one: Checked, mistake: FileError | None) -> Checked:
    if mistake is None or one.parsed.error is not None:
        return one
    error = SourceError(message=mistake.message, file=one.parsed.file, line=mistake.line, hint=mistake.hint)
    return one._replace(parsed=msgspec.structs.replace(one.parsed, error=error, workflows=()))


def with_params(one: Checked, params: Mapping[str, Any]) -> Checked:
    """The file, with an error if the parameters that were given are not what one of its workflows asks for."""
    try:
        for workflow in one.parsed.workflows if params else ():
            check_params(workflow, settled(workflow.language, params))
    except UsageError as error:
        problem = SourceError(message=error.message, hint=error.hint, file=one.parsed.file)
        return one._replace(parsed=msgspec.structs.replace(one.parsed, error=problem))
    return one


def first_slot(workflow: Workflow, now: datetime) -> Slot | None:
    """The first session that a schedule would start from now on; None without one, or if it is not by the clock."""
    if workflow.schedule is None:
        return None
    timetable = timetable_for(workflow.schedule, workflow.timezone)
    return timetable.first(now) if timetable.is_periodic else None


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
