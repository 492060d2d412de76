"""Decides which runs a due schedule starts and where it stands afterwards. Pure."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import NamedTuple

from headrace.clock import from_micros, to_micros
from headrace.definition import Workflow
from headrace.store import Occupation, ScheduleRow
from headrace.timetable import Slot, timetable_for

HOLD = timedelta(seconds=1)
"""When to look again at a schedule whose workflow has enough runs to do."""
_SMALLEST_BACKLOG = 16


class Plan(NamedTuple):
    slots: tuple[Slot, ...]
    """The times whose turn has come, oldest first."""
    row: ScheduleRow
    """The schedule after them."""


def plan(row: ScheduleRow, workflow: Workflow, occupation: Occupation, now: datetime, limit: int) -> Plan:
    """What a schedule starts at `now`, at most `limit` runs. The rest is due at once when it is looked at again."""
    if workflow.schedule is None or row.logical_at is None:
        return Plan((), row._replace(run_at=None))
    is_told = workflow.schedule.type == "custom"
    if occupation.is_paused:
        return Plan((), at_slot(row, None) if is_told else row._replace(run_at=None))
    room = min(limit, _room(workflow, occupation))
    if room < 1:
        return Plan((), row._replace(run_at=to_micros(now + HOLD)))
    if is_told:
        return _plan_told(row, now)
    timetable = timetable_for(workflow.schedule, workflow.timezone)
    due = timetable.due_from(timetable.slot_at(from_micros(row.logical_at)), now, limit=room)
    return Plan(due.slots, at_slot(row, due.next))


def _plan_told(row: ScheduleRow, now: datetime) -> Plan:
    """The one slot that user code has told, which is then asked for the next one."""
    assert row.logical_at is not None and row.run_at is not None, "checked by the caller"
    if row.run_at > to_micros(now):
        return Plan((), row)
    start = row.interval_start if row.interval_start is not None else row.logical_at
    end = row.interval_end if row.interval_end is not None else row.logical_at
    slot = Slot(from_micros(row.logical_at), from_micros(row.run_at), from_micros(start), from_micros(end))
    asking = at_slot(row, None)._replace(
        last_interval_start=start, last_interval_end=end, slots_wanted_at=to_micros(now)
    )
    return Plan((slot,), asking)


def at_slot(row: ScheduleRow, slot: Slot | None) -> ScheduleRow:
    """The schedule with another slot as its next one. None: it has come to its end."""
    if slot is None:
        return row._replace(logical_at=None, interval_start=None, interval_end=None, run_at=None)
    return row._replace(
        logical_at=to_micros(slot.logical_time),
        interval_start=to_micros(slot.interval_start),
        interval_end=to_micros(slot.interval_end),
        run_at=to_micros(slot.run_at),
    )


def has_room(workflow: Workflow, occupation: Occupation) -> bool:
    """Whether one more run could start at once."""
    own_runs = occupation.active_runs - occupation.backfill_runs
    return workflow.max_active_runs is None or own_runs < workflow.max_active_runs


def _room(workflow: Workflow, occupation: Occupation) -> int:
    """How many more runs are worth creating: a catch-up over years must not fill the store with waiting runs."""
    if workflow.schedule is not None and workflow.schedule.overlap == "wait":
        return 0 if occupation.active_runs else 1
    if workflow.max_active_runs is None or (workflow.schedule is not None and workflow.schedule.overlap == "skip"):
        return _SMALLEST_BACKLOG * 1000
    own_runs = occupation.active_runs - occupation.backfill_runs
    return max(2 * workflow.max_active_runs, _SMALLEST_BACKLOG) - own_runs
