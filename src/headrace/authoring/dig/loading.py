"""Loads one `.dig` file: read, compiled and checked."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from headrace.authoring.dig.asset_schedules import asset_uses
from headrace.authoring.dig.being_late import compile_sla
from headrace.authoring.dig.compiling import check_workflow_keys, compile_tree
from headrace.authoring.dig.directives import Directives
from headrace.authoring.dig.mistakes import Mistakes
from headrace.authoring.dig.naming import check_workflow_name
from headrace.authoring.dig.operator_names import operators_of_project
from headrace.authoring.dig.scheduling import compile_schedule, parse_timezone
from headrace.authoring.dig.sources import read_source
from headrace.authoring.dig.yaml_dialect import Section, place_of
from headrace.definition import Deadline, Node, Place, Schedule, Workflow, check_workflow


@dataclass(frozen=True, slots=True)
class DigFile:
    """A loaded `.dig` file. Its workflow is complete, so a task process needs nothing but the project's folder."""

    root: Path
    """The project's folder, absolute; relative paths in the workflow are meant from here."""
    file: str
    workflows: tuple[Workflow, ...]


def load_dig_file(root: Path, file: str, content: bytes | None = None) -> DigFile:
    """Load the workflow of one file, which is relative to the project's folder. The file's name is the workflow's.

    With `content`, these bytes are read in place of the file's; what it includes still comes from disk.
    """
    source = read_source(root, file, content)
    with operators_of_project(root):
        workflow = _workflow(source, PurePosixPath(file).stem, Place(file=file, line=1))
    return DigFile(root=root.resolve(), file=file, workflows=(check_workflow(workflow),))


def read_called_workflow(root: Path, file: str, content: bytes | None = None) -> Section:
    """The tasks of a file that another workflow calls, as the body of a group whose tasks work in the file's folder.

    What belongs to a workflow of its own, like its schedule, is left out. With `content` there need be no such file.
    """
    source = read_source(root, file, content)
    place = Place(file=file, line=1)
    check_workflow_keys(source, f"workflow `{PurePosixPath(file).stem}`", place)
    body = Section(source.place)
    for key, value in source.items():
        if key not in ("timezone", "schedule", "sla"):
            body.put(key, value, source.places[key])
    exported = Directives(body, f"workflow `{PurePosixPath(file).stem}`", place).export()
    folder = PurePosixPath(file).parent.as_posix()
    body.put("_export", {**exported, "_workdir": folder}, place_of(body, "_export", place))
    return body


def _workflow(source: Section, name: str, place: Place) -> Workflow:
    check_workflow_name(name, place)
    mistakes = Mistakes()
    timezone = "UTC"
    nodes: tuple[Node, ...] = ()
    schedule: Schedule | None = None
    deadlines: tuple[Deadline, ...] = ()
    with mistakes.noted():
        timezone = _timezone(source, place)
    with mistakes.noted():
        nodes = compile_tree(source, f"+{name}", place)
    with mistakes.noted():
        schedule = _schedule(source, timezone, place)
    with mistakes.noted():
        deadlines = _deadlines(source, f"+{name}", place)
    mistakes.raise_any()
    return Workflow(
        name=name,
        language="dig",
        nodes=nodes,
        timezone=timezone,
        schedule=schedule,
        on_timeout="cancel",
        assets=asset_uses(schedule, nodes),
        deadlines=deadlines,
        unique_logical_time=True,
        place=place,
    )


def _timezone(source: Section, place: Place) -> str:
    if source.get("timezone") is None:
        return "UTC"
    return parse_timezone(source["timezone"], place_of(source, "timezone", place))


def _schedule(source: Section, timezone: str, place: Place) -> Schedule | None:
    if source.get("schedule") is None:
        return None
    return compile_schedule(source["schedule"], timezone, place_of(source, "schedule", place))


def _deadlines(source: Section, root: str, place: Place) -> tuple[Deadline, ...]:
    if source.get("sla") is None:
        return ()
    return (compile_sla(source["sla"], root, place_of(source, "sla", place)),)
