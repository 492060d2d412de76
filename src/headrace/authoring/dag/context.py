"""What a running task can see: the context that is passed to `execute`, and the way back to the engine."""

from __future__ import annotations

from collections.abc import Callable, ItemsView, Iterator, KeysView, Mapping, ValuesView
from typing import Any, TypeAlias

from headrace.authoring.asking import Engine, loading_engine

CONTEXT_KEYS = frozenset(
    """
    asset_state_store conf conn dag dag_run data_interval_end data_interval_start ds ds_nodash exception execution_date
    expanded_ti_count inlet_events inlets logical_date macros map_index map_index_template next_ds next_ds_nodash
    next_execution_date outlet_events outlets params partition_date partition_key prev_data_interval_end_success
    prev_data_interval_start_success prev_ds prev_ds_nodash prev_end_date_success prev_execution_date
    prev_execution_date_success prev_start_date_success reason run_id task task_instance task_instance_key_str
    task_reschedule_count task_state_store templates_dict test_mode ti tomorrow_ds tomorrow_ds_nodash
    triggering_asset_events triggering_dataset_events try_number ts ts_nodash ts_nodash_with_tz var yesterday_ds
    yesterday_ds_nodash
    """.split()
)
"""Names that a task function gets from the context if it asks for them."""


Makers: TypeAlias = "Mapping[str, Callable[[Context, str], Any]]"
"""What makes a value of a context, by name: it gets the context, and the name."""


class Context(dict[str, Any]):
    """The context as a dict whose expensive values are made when they are first read.

    `__iter__` is overridden so that `dict(context)` and `**context`, too, go through `__getitem__`.
    """

    def __init__(self, values: Mapping[str, Any], makers: Makers) -> None:
        super().__init__(values)
        self._makers = makers

    def __missing__(self, key: str) -> Any:
        make = self._makers.get(key)
        if make is None:
            raise KeyError(key)
        value = self[key] = make(self, key)
        return value

    def _names(self) -> dict[str, None]:
        return dict.fromkeys([*dict.keys(self), *self._makers])

    def __contains__(self, key: object) -> bool:
        return dict.__contains__(self, key) or key in self._makers

    def __iter__(self) -> Iterator[str]:
        return iter(self._names())

    def __len__(self) -> int:
        return len(self._names())

    def get(self, key: str, default: Any = None) -> Any:
        return self[key] if key in self else default

    def keys(self) -> KeysView[str]:  # type: ignore[override]
        return KeysView(self)

    def values(self) -> ValuesView[Any]:  # type: ignore[override]
        return ValuesView(self)

    def items(self) -> ItemsView[str, Any]:  # type: ignore[override]
        return ItemsView(self)


_current: list[tuple[Context, Engine]] = []


def enter_task(context: Context, engine: Engine) -> None:
    """User code of this task runs from now on."""
    _current.append((context, engine))


def leave_task() -> None:
    _current.pop()


def get_current_context() -> Context:
    """The context of the task that is running."""
    if not _current:
        raise RuntimeError("there is no current context: no task is running here")
    return _current[-1][0]


def is_task_running() -> bool:
    return bool(_current)


def current_engine() -> Engine | None:
    """The way to the engine; None while a file is loaded by somebody who has none."""
    if _current:
        return _current[-1][1]
    return loading_engine()
