"""Dates of the runs before and after a run, as its schedule says; only older DAG files ask for them."""

from __future__ import annotations

import importlib
from datetime import datetime
from typing import Any

from headrace.authoring.dag.schedules import schedule_of
from headrace.authoring.dag.zones import timezone_name
from headrace.definition import Place


def dates_around(dag: Any, run: Any) -> tuple[datetime | None, datetime | None]:
    """The logical times before and after a run's own."""
    if run.run_type == "manual":
        # A run that somebody started has no place on the schedule, so it is its own neighbour.
        return run.logical_time, run.logical_time
    schedule = schedule_of(dag, Place())
    if schedule is None:
        return None, None
    # Named, not imported: cron and time zones take 2.5 MB, which most tasks do without.
    timetable = importlib.import_module("headrace.timetable").timetable_for(schedule, timezone_name(dag.timezone))
    slot = timetable.slot_at(run.logical_time)
    before, after = timetable.previous(slot), timetable.following(slot)
    return before and before.logical_time, after and after.logical_time
