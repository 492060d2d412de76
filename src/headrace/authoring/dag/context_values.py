"""Values of a task's context that are made when they are first read.

They are functions of the context, in tables that all tries share: a closure for each value and try would be a page of
memory each that a new process copies.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from headrace.authoring.dag.asset_events import InletEvents, OutletEvents, TriggeringEvents
from headrace.authoring.dag.configuration import conf
from headrace.authoring.dag.connections import Connection
from headrace.authoring.dag.context import Context, Makers
from headrace.authoring.dag.dates import to_pendulum
from headrace.authoring.dag.expansion import instance_count
from headrace.authoring.dag.macros import Macros
from headrace.authoring.dag.neighbours import dates_around
from headrace.authoring.dag.params import merged_params
from headrace.authoring.dag.state_stores import AssetStateStores, TaskStateStore
from headrace.authoring.dag.variables import Lookup, VariableLookup

_OF_LAST_SUCCESS = {
    "prev_data_interval_start_success": "interval_start",
    "prev_data_interval_end_success": "interval_end",
    "prev_start_date_success": "started_at",
    "prev_end_date_success": "ended_at",
    "prev_execution_date_success": "logical_time",
}
_DAY, _DAY_NODASH = "%Y-%m-%d", "%Y%m%d"
_WRITTEN = {
    "ds": (0, _DAY),
    "ds_nodash": (0, _DAY_NODASH),
    "yesterday_ds": (-1, _DAY),
    "yesterday_ds_nodash": (-1, _DAY_NODASH),
    "tomorrow_ds": (1, _DAY),
    "tomorrow_ds_nodash": (1, _DAY_NODASH),
    "ts_nodash": (0, "%Y%m%dT%H%M%S"),
    "ts_nodash_with_tz": (0, "%Y%m%dT%H%M%S%z"),
}
"""Days from the logical date, and how the day is written."""


def _makers(has_date: bool, has_assets: bool) -> Makers:
    makers = dict(_ALWAYS)
    if has_assets:
        makers["asset_state_store"] = _asset_state_stores
    if has_date:
        makers |= _OF_DATE
    return makers


def _key_text(context: Context, name: str) -> str:
    run = context["dag_run"]
    stamp = run.run_id if run.logical_time is None else run.logical_time.strftime("%Y%m%d")
    return f"{run.dag_id}__{context['ti'].task_id}__{stamp}"


def _params(context: Context, name: str) -> Any:
    return merged_params(context["dag"].params, context["task"].settings.params, context["dag_run"].conf)


def _instance_count(context: Context, name: str) -> int | None:
    # The context's own task has become one of the instances by now.
    instance = context["ti"]
    return instance_count(context["dag"].task_dict[instance.task_id], instance)


def _triggering_events(context: Context, name: str) -> TriggeringEvents:
    return TriggeringEvents(context["ti"].engine)


def _inlet_events(context: Context, name: str) -> InletEvents:
    return InletEvents(context["inlets"], context["ti"].engine)


def _task_state_store(context: Context, name: str) -> TaskStateStore:
    return TaskStateStore(context["ti"].engine)


def _asset_state_stores(context: Context, name: str) -> AssetStateStores:
    return AssetStateStores(context["inlets"], context["outlets"], context["ti"].engine)


def _of_last_success(context: Context, name: str) -> Any:
    """A date of the last run before this one that succeeded; None if there is none. All are made at once."""
    try:
        fields = context["ti"].engine.ask("get_previous_run", is_success=True)
    except LookupError:
        fields = {}
    for one, field in _OF_LAST_SUCCESS.items():
        text = fields.get(field)
        dict.setdefault(context, one, None if text is None else to_pendulum(datetime.fromisoformat(text)))
    return dict.get(context, name)


def _of_run(context: Context, name: str) -> Any:
    return getattr(context["dag_run"], name)


def _written(context: Context, name: str) -> str:
    days, pattern = _WRITTEN[name]
    instant: datetime = context["dag_run"].logical_time
    return (instant.astimezone(UTC) + timedelta(days=days)).strftime(pattern)


def _timestamp(context: Context, name: str) -> str:
    instant: datetime = context["dag_run"].logical_time
    return instant.astimezone(UTC).isoformat()


def _of_neighbour(context: Context, name: str) -> Any:
    """A date of the run before or after this one, as its schedule says. All are made at once."""
    for which, date in zip(("prev", "next"), dates_around(context["dag"], context["dag_run"]), strict=True):
        dict.setdefault(context, f"{which}_execution_date", to_pendulum(date))
        dict.setdefault(context, f"{which}_ds", date and date.strftime(_DAY))
        dict.setdefault(context, f"{which}_ds_nodash", date and date.strftime(_DAY_NODASH))
    return dict.get(context, name)


_ALWAYS: Makers = {
    "params": _params,
    "conf": lambda context, name: conf,
    "test_mode": lambda context, name: False,
    "task_instance_key_str": _key_text,
    **dict.fromkeys(("partition_key", "partition_date"), _of_run),
    "macros": lambda context, name: Macros(),
    "var": lambda context, name: VariableLookup(),
    "conn": lambda context, name: Lookup(Connection.get),
    "task_reschedule_count": lambda context, name: context["ti"].reschedule_count(),
    "expanded_ti_count": _instance_count,
    "triggering_asset_events": _triggering_events,
    "triggering_dataset_events": _triggering_events,
    "inlet_events": _inlet_events,
    "outlet_events": lambda context, name: OutletEvents(),
    "task_state_store": _task_state_store,
    **dict.fromkeys(_OF_LAST_SUCCESS, _of_last_success),
}

_OF_DATE: Makers = {
    **dict.fromkeys(_WRITTEN, _written),
    "ts": _timestamp,
    **dict.fromkeys(("logical_date", "execution_date", "data_interval_start", "data_interval_end"), _of_run),
    **{
        f"{which}_{name}": _of_neighbour for which in ("prev", "next") for name in ("execution_date", "ds", "ds_nodash")
    },
}

MAKERS = {(date, assets): _makers(date, assets) for date in (False, True) for assets in (False, True)}
"""What the context of a try has beside its plain values: dates if its run has one, assets if its task has some."""
