"""Runs that do not come from a schedule but have its clock."""

from __future__ import annotations

from datetime import UTC, datetime

from headrace.definition import Workflow
from headrace.timetable.schedules import timetable_for
from headrace.timetable.slots import Slot


def manual_slot(workflow: Workflow, at: datetime) -> Slot:
    """The slot of a run that somebody starts for a time; its interval is the schedule's last complete one."""
    if workflow.schedule is None:
        at = at.astimezone(UTC)
        return Slot(at, at, at, at)
    return timetable_for(workflow.schedule, workflow.timezone).manual(at)
