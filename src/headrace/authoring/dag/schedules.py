"""A DAG's `schedule` argument as the definition's schedule."""

from __future__ import annotations

import importlib
from datetime import datetime, timedelta, tzinfo
from typing import Any, Literal

from headrace.authoring.dag.dags import DAG
from headrace.clock import iso
from headrace.definition import CRON_PRESETS, Place, Schedule
from headrace.errors import DefinitionError


def schedule_of(dag: DAG, place: Place) -> Schedule | None:
    """When the DAG runs by itself; None if it never does."""
    if dag.schedule is None:
        return None
    kind, spec = _type_and_spec(dag, place)
    schedule = Schedule(
        type=kind,
        spec=spec,
        catch_up=_catch_up(dag.catchup),
        start_at=iso(dag.start_date),
        end_at=iso(dag.end_date),
    )
    if kind == "continuous":
        raise DefinitionError(
            f"the schedule of DAG `{dag.dag_id}` cannot be used: `@continuous` is not supported yet",
            file=place.file,
            line=place.line,
        )
    _check(schedule, dag, place)
    return schedule


def _check(schedule: Schedule, dag: DAG, place: Place) -> None:
    # Named, not imported: cron and time zones take 2.5 MB, which a warm parent of unscheduled DAGs does without.
    timetable = importlib.import_module("headrace.timetable")
    try:
        timetable.timetable_for(schedule, timezone_name(dag.timezone))
    except DefinitionError as error:
        message = f"the schedule of DAG `{dag.dag_id}` cannot be used: {error.message}"
        raise DefinitionError(message, hint=error.hint, file=place.file, line=place.line) from error


def _catch_up(catchup: bool) -> Literal["all", "latest"]:
    return "all" if catchup else "latest"


def _type_and_spec(dag: DAG, place: Place) -> tuple[str, dict[str, Any]]:
    value = dag.schedule
    if isinstance(value, timedelta):
        if value <= timedelta(0):
            raise _refusal(dag, place, "a positive timedelta", value)
        return "interval", {"seconds": value.total_seconds(), "intervals": False}
    if not isinstance(value, str):
        raise _refusal(dag, place, "a cron expression, a preset, a timedelta or None", type(value).__name__)
    if value in ("@once", "@continuous"):
        return value[1:], {}
    zone = timezone_name(dag.timezone)
    return "cron", {
        "expression": CRON_PRESETS.get(value, value),
        "timezone": zone,
        "semantics": "airflow",
        "intervals": False,
    }


def _refusal(dag: DAG, place: Place, expected: str, got: object) -> DefinitionError:
    return DefinitionError(
        f"expected the schedule of DAG `{dag.dag_id}` to be {expected}, got: `{got}`",
        file=place.file,
        line=place.line,
    )


def timezone_name(zone: tzinfo) -> str:
    """The IANA name of a time zone, or that of a zone with the same fixed offset."""
    name = getattr(zone, "key", None) or getattr(zone, "zone", None)
    if isinstance(name, str):
        return name
    offset = zone.utcoffset(datetime(2000, 1, 1)) or timedelta(0)
    if not offset:
        return "UTC"
    hours, rest = divmod(offset, timedelta(hours=1))
    if rest:
        raise ValueError(f"expected a time zone with a name or an offset of whole hours, got: {zone}")
    # In this family of names the sign says how far Greenwich is ahead.
    return f"Etc/GMT{-hours:+d}"
