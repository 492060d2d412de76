"""Schedules as people handle them: switched off and on, and moved to a later time."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import NamedTuple

from headrace.actions.finding import find_workflow_of
from headrace.actions.sessions import logical_time
from headrace.clock import Clock, from_micros, iso, to_micros
from headrace.definition import Workflow
from headrace.errors import NotFoundError, StateError, UsageError
from headrace.projects.saving import schedule_row
from headrace.store import (
    Definitions,
    ListedSchedule,
    ScheduleRow,
    Store,
    Transaction,
    disable_schedule,
    enable_schedule,
    find_project,
    list_schedules,
    lock_schedule,
    save_schedule,
)
from headrace.timetable import Slot, Timetable, timetable_for


class Later(NamedTuple):
    """Where a schedule is moved to: over a number of its times, or to the first one that is due at a time."""

    skip: int | None = None
    to: str | None = None
    run_at: str | None = None
    """When the next run is due in place of the time that the schedule says."""


def find_schedules(tx: Transaction, name: str, workflow: str | None = None) -> list[ListedSchedule]:
    """Schedules by PROJECT and WORKFLOW, all of a PROJECT, or one by its id."""
    rows = list_schedules(tx)
    if workflow is None and name.isdigit():
        found = [row for row in rows if row.id == int(name)]
        if not found:
            raise NotFoundError(f"there is no schedule {name}", hint="`headrace schedules` lists them")
        return found
    if workflow is None:
        owner = find_project(tx, name)
        found, whose = [row for row in rows if row.project == owner.name], f"project `{owner.name}`"
    else:
        chosen = find_workflow_of(tx, name, workflow)
        found, whose = [row for row in rows if row.id == chosen.id], f"workflow `{chosen.name}`"
    if not found:
        raise NotFoundError(f"{whose} has no schedule", hint="`headrace schedules` lists those that have one")
    return found


def disable(store: Store, clock: Clock, name: str, workflow: str | None = None) -> list[ListedSchedule]:
    """Start nothing by these schedules; what runs goes on, and people may start runs."""
    now = to_micros(clock.now())
    return store.transact(lambda tx: _each(tx, name, workflow, lambda row: disable_schedule(tx, row.id, now)))


def enable(store: Store, name: str, workflow: str | None = None) -> list[ListedSchedule]:
    """Let schedules go on. What they have missed is caught up, as far as their own settings say."""
    return store.transact(lambda tx: _each(tx, name, workflow, lambda row: enable_schedule(tx, row.id)))


def _each(
    tx: Transaction, name: str, workflow: str | None, change: Callable[[ListedSchedule], None]
) -> list[ListedSchedule]:
    found = find_schedules(tx, name, workflow)
    for row in found:
        lock_schedule(tx, row.id)
        change(row)
    ids = {row.id for row in found}
    return [row for row in list_schedules(tx) if row.id in ids]


class _Rehearsed(Exception):
    def __init__(self, row: ListedSchedule) -> None:
        self.row = row


def reschedule(
    store: Store, clock: Clock, name: str, workflow: str | None, later: Later, *, is_dry: bool = False
) -> ListedSchedule:
    """Leave out times of a schedule. In a dry run only say where it would stand."""

    def work(tx: Transaction) -> ListedSchedule:
        found = find_schedules(tx, name, workflow)
        if len(found) > 1:
            raise UsageError(f"project `{name}` has {len(found)} schedules", hint="name the workflow, too")
        row = lock_schedule(tx, found[0].id)
        assert row is not None, "found a moment ago"
        definition = tx.shared(Definitions).version(tx, found[0].version_id).workflow
        _move(tx, row, definition, later, clock.now())
        tx.tell()
        (moved,) = (one for one in list_schedules(tx) if one.id == row.workflow_id)
        if is_dry:
            raise _Rehearsed(moved)
        return moved

    try:
        return store.transact(work)
    except _Rehearsed as rehearsed:
        return rehearsed.row


def _move(tx: Transaction, row: ScheduleRow, workflow: Workflow, later: Later, now: datetime) -> None:
    if row.logical_at is None or workflow.schedule is None:
        raise StateError(f"the schedule of `{workflow.name}` has come to its end")
    timetable = timetable_for(workflow.schedule, workflow.timezone)
    if not timetable.is_periodic:
        raise StateError(f"the schedule of `{workflow.name}` has no times that could be left out")
    present = timetable.slot_at(from_micros(row.logical_at))
    slot = _target(timetable, present, workflow, later, now)
    if slot is not None and slot.logical_time <= present.logical_time:
        raise StateError(
            f"the schedule of `{workflow.name}` is at {iso(present.logical_time)} already and can only be moved ahead"
        )
    moved = schedule_row(row.workflow_id, row.spec_digest, slot, row.last_logical_at)
    if later.run_at is not None:
        moved = moved._replace(run_at=to_micros(logical_time(workflow, later.run_at, now)))
    save_schedule(tx, moved)


def _target(timetable: Timetable, present: Slot, workflow: Workflow, later: Later, now: datetime) -> Slot | None:
    if (later.skip is None) == (later.to is None):
        raise UsageError("expected either how many times to skip or the time to go on at")
    since = now if later.to is None else logical_time(workflow, later.to, now)
    slot = present if present.run_at >= since else timetable.first_due_from(since)
    for _ in range(later.skip or 0):
        slot = None if slot is None else timetable.following(slot)
    return slot
