"""The times around a run that a workflow's tasks see: the run's own and its neighbours on the schedule."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from headrace.definition import Workflow
from headrace.timetable import Slot, timetable_for, zone_of


class Neighbours(NamedTuple):
    last: datetime | None
    next: datetime | None


def neighbours(workflow: Workflow, logical_time: datetime) -> Neighbours:
    """The scheduled times before and after a run's, by the schedule alone: whether they ran does not matter."""
    if workflow.schedule is None:
        return Neighbours(None, None)
    timetable = timetable_for(workflow.schedule, workflow.timezone)
    slot = timetable.slot_at(logical_time)
    return Neighbours(_time(timetable.previous(slot)), _time(timetable.following(slot)))


def local_time(instant: datetime, timezone: str) -> datetime:
    """An instant on the clocks of a workflow's time zone."""
    return instant.astimezone(zone_of(timezone))


def _time(slot: Slot | None) -> datetime | None:
    return None if slot is None else slot.logical_time
