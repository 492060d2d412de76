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
    if occupation.is_paused or workflow.schedule is None or row.logical_at is None:
        return Plan((), row._replace(run_at=None))
    room = min(limit, _room(workflow, occupation))
    if room < 1:
        return Plan((), row._replace(run_at=to_micros(now + HOLD)))
    timetable = timetable_for(workflow.schedule, workflow.timezone)
    due = timetable.due_from(timetable.slot_at(from_micros(row.logical_at)), now, limit=room)
    return Plan(due.slots, at_slot(row, due.next))


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


def _room(workflow: Workflow, occupation: Occupation) -> int:
    """How many more runs are worth creating: a catch-up over years must not fill the store with waiting runs."""
    if workflow.max_active_runs is None or (workflow.schedule is not None and workflow.schedule.overlap == "skip"):
        return _SMALLEST_BACKLOG * 1000
    return max(2 * workflow.max_active_runs, _SMALLEST_BACKLOG) - occupation.active_runs
