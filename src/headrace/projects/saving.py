"""Saves parsed files: workflows that changed, their schedules, and why a file could not be loaded.

Each file has a transaction of its own, so that one mistake costs one file. Saves of a project wait for each other.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterable, Mapping
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import NamedTuple

from headrace.clock import from_micros, to_micros
from headrace.definition import Workflow, to_json
from headrace.errors import DefinitionError
from headrace.projects.outcome import ParsedFile
from headrace.store import (
    FileError,
    SavedWorkflow,
    ScheduleRow,
    Store,
    Transaction,
    defined_twice,
    delete_schedule,
    ensure_project,
    lock_schedules_of_file,
    save_asset_uses,
    save_error,
    save_file,
    save_schedule,
)
from headrace.timetable import Slot, Timetable, timetable_for

_log = logging.getLogger("headrace.projects")


class SavedFile(NamedTuple):
    """A file after it was saved."""

    file: str
    digest: str
    workflows: tuple[SavedWorkflow, ...] = ()
    error: FileError | None = None
    """Why it could not be loaded or saved. What was saved of it before stays in force."""
    is_rival: bool = False
    """Another file defines a workflow of the same name; it may be saved once that one has changed."""

    @property
    def has_news(self) -> bool:
        """Whether somebody who shows or runs workflows should look."""
        return self.error is not None or any(one.is_changed or one.is_new for one in self.workflows)


def save_parsed(
    store: Store, project_name: str, root: Path, parsed: Iterable[ParsedFile], now: datetime, *, may_move: bool = True
) -> list[SavedFile]:
    """Save files as they come. A workflow that moved from one of them to another is found in its new place.

    Raises StateError if the project is not to be saved from this folder; see `ensure_project`.
    """
    save = partial(_save, store, project_name, root, now=now, may_move=may_move)
    saved: dict[str, SavedFile] = {}
    rivals: list[ParsedFile] = []
    for one in parsed:
        saved[one.file] = save(one)
        for warning in (text for workflow in one.workflows for text in workflow.warnings):
            _log.warning("`%s` of project `%s`: %s", one.file, project_name, warning)
        if saved[one.file].is_rival:
            rivals.append(one)
    # Once more, because the other file may have given the workflow up, and was saved later.
    for one in rivals:
        saved[one.file] = save(one)
    return list(saved.values())


def _save(store: Store, project_name: str, root: Path, parsed: ParsedFile, now: datetime, may_move: bool) -> SavedFile:
    work = partial(_save_in, project_name=project_name, root=root, parsed=parsed, now=now, may_move=may_move)
    return store.transact(work)


def _save_in(
    tx: Transaction, project_name: str, root: Path, parsed: ParsedFile, now: datetime, may_move: bool
) -> SavedFile:
    at = to_micros(now)
    # This also locks the project's row: nobody else saves files of it at the same time.
    project_id = ensure_project(tx, project_name, str(root.absolute()), at, may_move=may_move)
    error, is_rival = mistake_of(parsed), False
    if error is None:
        try:
            workflows = _save_workflows(tx, project_id, parsed, now)
        except DefinitionError as mistake:
            error, is_rival = FileError(mistake.message, mistake.line, mistake.hint), True
        else:
            saved = SavedFile(parsed.file, parsed.digest, tuple(workflows))
            if saved.has_news:
                tx.tell()
            return saved
    save_error(tx, project_id, parsed.file, error, at)
    tx.tell()
    return SavedFile(parsed.file, parsed.digest, error=error, is_rival=is_rival)


def mistakes_of(files: Iterable[ParsedFile]) -> dict[str, FileError]:
    """What is wrong with each of the files of a project, if they were all that it has."""
    mistakes: dict[str, FileError] = {}
    first: dict[str, str] = {}
    for one in files:
        error = mistake_of(one) or _rivalry(one, first)
        if error is not None:
            mistakes[one.file] = error
        else:
            first.update((workflow.name, one.file) for workflow in one.workflows)
    return mistakes


def _rivalry(parsed: ParsedFile, first: Mapping[str, str]) -> FileError | None:
    for workflow in parsed.workflows:
        other = first.get(workflow.name, parsed.file)
        if other != parsed.file:
            return FileError(defined_twice(workflow.name, other, parsed.file))
    return None


def mistake_of(parsed: ParsedFile) -> FileError | None:
    """What is wrong with a file, as far as it can be told without the database."""
    if parsed.error is not None:
        one = parsed.error
        return FileError(one.message, one.line, one.hint, one.detail or None)
    names = [workflow.name for workflow in parsed.workflows]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        return FileError(f"workflow `{twice}` is defined twice in `{parsed.file}`")
    for workflow in parsed.workflows:
        try:
            timetable_of(workflow)
        except DefinitionError as error:
            return FileError(f"workflow `{workflow.name}`: {error.message}", error.line, error.hint)
    return None


def _save_workflows(tx: Transaction, project_id: int, parsed: ParsedFile, now: datetime) -> list[SavedWorkflow]:
    schedules = lock_schedules_of_file(tx, project_id, parsed.file)
    saved = save_file(tx, project_id, parsed.file, parsed.digest, parsed.workflows, to_micros(now), parsed.content)
    for one, workflow in zip(saved, parsed.workflows, strict=True):
        if one.is_changed or one.is_new:
            save_asset_uses(tx, one.id, workflow.assets, to_micros(now))
        _save_schedule(tx, one.id, workflow, schedules.get(one.id), now)
    return saved


def _save_schedule(
    tx: Transaction, workflow_id: int, workflow: Workflow, before: ScheduleRow | None, now: datetime
) -> None:
    """A changed schedule is aligned anew, an unchanged one keeps its place, one that is gone is deleted."""
    timetable = timetable_of(workflow)
    if timetable is None:
        if before is not None:
            delete_schedule(tx, workflow_id)
        return
    digest = schedule_digest(workflow)
    if before is not None and before.spec_digest == digest:
        return
    last = None if before is None else before.last_logical_at
    slot = timetable.first(now) if last is None else timetable.following(timetable.slot_at(from_micros(last)))
    row = schedule_row(workflow_id, digest, slot, last)
    save_schedule(tx, with_untimed(row, before, workflow, to_micros(now)))


def with_untimed(row: ScheduleRow, before: ScheduleRow | None, workflow: Workflow, now: int) -> ScheduleRow:
    """The schedule with what the clock does not tell: events that may wait for it, times that only user code knows."""
    assert workflow.schedule is not None, "checked by the caller"
    if before is not None:
        row = row._replace(last_interval_start=before.last_interval_start, last_interval_end=before.last_interval_end)
    if workflow.schedule.type == "assets" and row.run_at is None:
        return row._replace(run_at=now)
    return row._replace(slots_wanted_at=now) if workflow.schedule.type == "custom" else row


def schedule_digest(workflow: Workflow) -> str:
    """Changes if and only if the times of the schedule may change."""
    return hashlib.sha256(to_json([workflow.schedule, workflow.timezone])).hexdigest()


def timetable_of(workflow: Workflow) -> Timetable | None:
    """When a workflow runs by itself; None if it never does."""
    return None if workflow.schedule is None else timetable_for(workflow.schedule, workflow.timezone)


def schedule_row(workflow_id: int, digest: str, slot: Slot | None, last: int | None) -> ScheduleRow:
    """A schedule whose next slot is this one. None: it has come to its end."""
    if slot is None:
        return ScheduleRow(workflow_id, digest, None, None, None, None, last)
    instants = (slot.logical_time, slot.interval_start, slot.interval_end, slot.run_at)
    logical_at, interval_start, interval_end, run_at = (to_micros(instant) for instant in instants)
    return ScheduleRow(workflow_id, digest, logical_at, interval_start, interval_end, run_at, last)
