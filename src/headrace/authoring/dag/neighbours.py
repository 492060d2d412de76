"""Dates of the runs before and after a run, as its schedule says; only older DAG files ask for them."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from datetime import datetime
from functools import cached_property
from typing import Any

from headrace.authoring.dag.schedules import schedule_of
from headrace.authoring.dag.zones import timezone_name
from headrace.definition import Place


def neighbour_dates(dag: Any, run: Any, to_date: Callable[[datetime | None], Any]) -> dict[str, Callable[[], Any]]:
    """`prev_execution_date`, `next_ds` and their kin, each computed when it is first read."""

    near = _Neighbours(dag, run)
    lazy: dict[str, Callable[[], Any]] = {}
    for position, name in enumerate(("prev", "next")):
        lazy[f"{name}_execution_date"] = lambda position=position: to_date(near.dates[position])  # type: ignore[misc]
        lazy[f"{name}_ds"] = lambda position=position: _written(near.dates[position], "%Y-%m-%d")  # type: ignore[misc]
        lazy[f"{name}_ds_nodash"] = lambda position=position: _written(near.dates[position], "%Y%m%d")  # type: ignore[misc]
    return lazy


class _Neighbours:
    """The logical times before and after a run's own, computed once."""

    def __init__(self, dag: Any, run: Any) -> None:
        self._dag = dag
        self._run = run

    @cached_property
    def dates(self) -> tuple[datetime | None, datetime | None]:
        return _around(self._dag, self._run)


def _around(dag: Any, run: Any) -> tuple[datetime | None, datetime | None]:
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


def _written(instant: datetime | None, pattern: str) -> str | None:
    return None if instant is None else instant.strftime(pattern)
