"""Values of a task's context that the engine is asked for when they are first read: assets, and the run before."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from functools import cached_property
from typing import Any

from headrace.authoring.asking import Engine
from headrace.authoring.dag.asset_events import InletEvents, OutletEvents, TriggeringEvents
from headrace.authoring.dag.dates import to_pendulum
from headrace.authoring.dag.state_stores import AssetStateStores, TaskStateStore, has_assets

Lazy = dict[str, Callable[[], Any]]

_OF_LAST_SUCCESS = {
    "prev_data_interval_start_success": "interval_start",
    "prev_data_interval_end_success": "interval_end",
    "prev_start_date_success": "started_at",
    "prev_end_date_success": "ended_at",
    "prev_execution_date_success": "logical_time",
}


def asset_values(settings: Any, engine: Engine) -> Lazy:
    """Events of assets: those that started the run, those of the inlets, those that the task will emit."""
    return {
        "triggering_asset_events": lambda: TriggeringEvents(engine),
        "triggering_dataset_events": lambda: TriggeringEvents(engine),
        "inlet_events": lambda: InletEvents(settings.inlets, engine),
        "outlet_events": OutletEvents,
    }


def state_stores(settings: Any, engine: Engine) -> Lazy:
    """What the task and its assets keep beyond a try."""
    stores: Lazy = {"task_state_store": lambda: TaskStateStore(engine)}
    if has_assets([*settings.inlets, *settings.outlets]):
        stores["asset_state_store"] = lambda: AssetStateStores(settings.inlets, settings.outlets, engine)
    return stores


class _LastSuccess:
    """The last run before this one that succeeded, asked for once."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    @cached_property
    def fields(self) -> dict[str, Any]:
        try:
            found: dict[str, Any] = self._engine.ask("get_previous_run", is_success=True)
            return found
        except LookupError:
            return {}


def previous_run_values(engine: Engine) -> Lazy:
    """Dates of the last run before this one that succeeded; None if there is none."""
    run = _LastSuccess(engine)
    return {name: _date(run, field) for name, field in _OF_LAST_SUCCESS.items()}


def _date(run: _LastSuccess, field: str) -> Callable[[], Any]:
    def date() -> Any:
        text = run.fields.get(field)
        return None if text is None else to_pendulum(datetime.fromisoformat(text))

    return date
