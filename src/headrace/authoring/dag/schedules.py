"""A DAG's `schedule` argument as the definition's schedule."""

from __future__ import annotations

import importlib
from typing import Any

from headrace.authoring.dag import installation_defaults
from headrace.authoring.dag.asset_timetables import AssetTriggeredTimetable
from headrace.authoring.dag.assets import BaseAsset
from headrace.authoring.dag.dags import DAG
from headrace.authoring.dag.durations import is_duration
from headrace.authoring.dag.timetables import (
    ContinuousTimetable,
    CronDataIntervalTimetable,
    CronTriggerTimetable,
    DeltaDataIntervalTimetable,
    DeltaTriggerTimetable,
    KnownTimetable,
    NullTimetable,
    OnceTimetable,
    Timetable,
)
from headrace.authoring.dag.zones import timezone_name
from headrace.clock import iso
from headrace.definition import Place, Schedule, to_json
from headrace.errors import DefinitionError

_OWN_PACKAGE = "headrace."


def schedule_of(dag: DAG, place: Place) -> Schedule | None:
    """When the DAG runs by itself; None if it never does."""
    try:
        timetable = timetable_of(dag)
        if timetable is None:
            return None
        timetable.validate()
        kind, spec = _type_and_spec(timetable, timezone_name(dag.timezone))
        schedule = Schedule(
            type=kind,
            spec=spec,
            catch_up="all" if dag.catchup else "latest",
            overlap="wait" if kind == "continuous" else "allow",
            start_at=iso(dag.start_date),
            end_at=iso(dag.end_date),
        )
        _check(schedule, timetable, dag)
    except DefinitionError as error:
        message = f"the schedule of DAG `{dag.dag_id}` cannot be used: {error.message}"
        raise DefinitionError(message, hint=error.hint, file=place.file, line=place.line) from error
    except (TypeError, ValueError) as error:
        message = f"the schedule of DAG `{dag.dag_id}` cannot be used: {error}"
        raise DefinitionError(message, file=place.file, line=place.line) from error
    return schedule


def timetable_of(dag: DAG) -> Timetable | None:
    """The timetable that a DAG's schedule stands for, however it was written. None: it never runs by itself."""
    value = dag.schedule
    if isinstance(value, Timetable):
        return None if isinstance(value, NullTimetable) else value
    if value is None or value == []:
        return None
    if isinstance(value, str):
        return _named(value, timezone_name(dag.timezone))
    if is_duration(value):
        has_intervals = installation_defaults.DELTA_DATA_INTERVALS
        return DeltaDataIntervalTimetable(value) if has_intervals else DeltaTriggerTimetable(value)
    if isinstance(value, BaseAsset) or _is_collection_of_assets(value):
        return AssetTriggeredTimetable(value)
    raise DefinitionError(
        f"expected a cron expression, a preset, a timedelta, a timetable, assets or None, got: `{type(value).__name__}`"
    )


def _named(value: str, zone: str) -> Timetable:
    if value == "@once":
        return OnceTimetable()
    if value == "@continuous":
        return ContinuousTimetable()
    if installation_defaults.CRON_DATA_INTERVALS:
        return CronDataIntervalTimetable(value, zone)
    return CronTriggerTimetable(value, timezone=zone)


def _is_collection_of_assets(value: Any) -> bool:
    return isinstance(value, list | tuple | set) and all(isinstance(one, BaseAsset) for one in value)


def _type_and_spec(timetable: Timetable, zone: str) -> tuple[str, dict[str, Any]]:
    if isinstance(timetable, KnownTimetable) and type(timetable).__module__.startswith(_OWN_PACKAGE):
        return timetable.as_schedule(zone)
    kind = type(timetable)
    if timetable.partitioned:
        raise DefinitionError(f"only Airflow's own timetables can be for partitions, not `{kind.__name__}`")
    data = timetable.serialize()
    to_json(data)
    return "custom", {"class": f"{kind.__module__}.{kind.__qualname__}", "data": data}


def _check(schedule: Schedule, timetable: Timetable, dag: DAG) -> None:
    limit = timetable.active_runs_limit
    if limit is not None and dag.max_active_runs > limit:
        raise DefinitionError(f"it needs `max_active_runs={limit}`, got: {dag.max_active_runs}")
    # Named, not imported: cron and time zones take 2.5 MB, which a warm parent of unscheduled DAGs does without.
    importlib.import_module("headrace.timetable").timetable_for(schedule, timezone_name(dag.timezone))
