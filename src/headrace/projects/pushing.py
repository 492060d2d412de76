"""Saves a whole project at once: an archive, all its workflows and all their schedules, or nothing of it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from typing import NamedTuple

from headrace.clock import from_micros, to_micros
from headrace.definition import Workflow
from headrace.errors import LoadError, NotFoundError, did_you_mean
from headrace.projects.outcome import ParsedFile
from headrace.projects.saving import mistakes_of, schedule_digest, schedule_row, timetable_of, with_untimed
from headrace.store import (
    FileError,
    ScheduleRow,
    Transaction,
    add_archive,
    delete_schedule,
    ensure_project,
    files_of_project,
    lock_schedules_of_project,
    remove_file,
    save_asset_uses,
    save_file,
    save_schedule,
)
from headrace.timetable import Slot, Timetable


class Push(NamedTuple):
    """What is pushed."""

    project: str
    revision: str
    digest: str
    data: bytes
    schedule_from: datetime | None = None
    """From when on schedules start that have not started anything yet. None: from now on."""
    cleared_schedules: Collection[str] | None = ()
    """Workflows whose schedules forget what they have started. None: all."""


class PushedProject(NamedTuple):
    project_id: int
    workflows: list[str]
    removed: list[str]
    """Files of an earlier revision that define nothing any more."""


def checked_files(project: str, parsed: Iterable[ParsedFile]) -> list[ParsedFile]:
    """Files that can be saved, sorted. Raises one LoadError with what is wrong in all of them."""
    files = sorted(parsed, key=lambda one: one.file)
    mistakes = mistakes_of(files)
    lines = [_line(one, mistakes[one.file]) for one in files if one.file in mistakes]
    if not lines:
        return files
    count = "1 file" if len(lines) == 1 else f"{len(lines)} files"
    raise LoadError(
        f"could not push project `{project}`, which stays as it is: {count} of {len(files)} cannot be loaded",
        detail="\n".join(lines),
    )


def _line(parsed: ParsedFile, error: FileError) -> str:
    place = (parsed.error.file if parsed.error else "") or parsed.file
    place = place if error.line is None else f"{place}:{error.line}"
    more = error.detail.rstrip().splitlines() if error.detail else []
    hint = [] if error.hint is None else [f"hint: {error.hint}"]
    return "\n    ".join([f"  {place}: {error.message}", *more, *hint])


def save_push(tx: Transaction, push: Push, files: Sequence[ParsedFile], now: datetime) -> PushedProject:
    """Make an archive the newest revision of a project. All of it becomes visible with the transaction."""
    at = to_micros(now)
    # This also locks the project's row: pushes of one project wait for each other.
    project_id = ensure_project(tx, push.project, "", at)
    schedules = lock_schedules_of_project(tx, project_id)
    archive_id = add_archive(tx, project_id, push.revision, push.digest, push.data, at)
    # First what is gone, so that a workflow may move to a file with another name.
    removed = sorted(files_of_project(tx, project_id) - {one.file for one in files})
    for file in removed:
        remove_file(tx, project_id, file)
    names = []
    cleared = _cleared(push, [workflow.name for one in files for workflow in one.workflows])
    for one in files:
        saved = save_file(tx, project_id, one.file, one.digest, one.workflows, at, archive_id=archive_id)
        for row, workflow in zip(saved, one.workflows, strict=True):
            names.append(workflow.name)
            save_asset_uses(tx, row.id, workflow.assets, at)
            before = schedules.get(row.id)
            if before is not None and workflow.name in cleared:
                before = before._replace(spec_digest="", last_logical_at=None)
            _save_schedule(tx, row.id, workflow, before, push.schedule_from, now)
    tx.tell()
    return PushedProject(project_id, names, removed)


def _cleared(push: Push, names: Sequence[str]) -> Collection[str]:
    if push.cleared_schedules is None:
        return names
    for name in push.cleared_schedules:
        if name not in names:
            raise NotFoundError(f"the pushed files define no workflow `{name}`", hint=did_you_mean(name, names))
    return push.cleared_schedules


def _save_schedule(
    tx: Transaction,
    workflow_id: int,
    workflow: Workflow,
    before: ScheduleRow | None,
    schedule_from: datetime | None,
    now: datetime,
) -> None:
    """A schedule that has started something goes on from there; another one begins anew. Unchanged ones stay."""
    timetable = timetable_of(workflow)
    if timetable is None:
        if before is not None:
            delete_schedule(tx, workflow_id)
        return
    digest = schedule_digest(workflow)
    last = None if before is None else before.last_logical_at
    is_same = before is not None and before.spec_digest == digest
    if not is_same or (last is None and schedule_from is not None):
        row = schedule_row(workflow_id, digest, _next(timetable, last, schedule_from or now), last)
        save_schedule(tx, with_untimed(row, before, workflow, to_micros(now)))


def _next(timetable: Timetable, last: int | None, since: datetime) -> Slot | None:
    return timetable.first(since) if last is None else timetable.following(timetable.slot_at(from_micros(last)))
