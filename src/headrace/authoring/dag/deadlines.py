"""Deadline alerts of DAGs: by when a run is to be done, and what is called when it is not."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from headrace.authoring.dag.notifier import BaseNotifier

DEFAULT_RUNS = 10


class BaseDeadlineReference:
    """A moment of a run that deadlines count from. Those of `DeadlineReference` are known to the engine."""

    @property
    def reference_name(self) -> str:
        return type(self).__name__


class DagRunLogicalDateDeadline(BaseDeadlineReference):
    """The run's logical date."""


class DagRunQueuedAtDeadline(BaseDeadlineReference):
    """When the run was queued; clearing it or trying it again queues it anew."""


@dataclass
class FixedDatetimeDeadline(BaseDeadlineReference):
    """The same instant for all runs."""

    instant: datetime


@dataclass
class AverageRuntimeDeadline(BaseDeadlineReference):
    """The end of a run that takes as long as the newest successful ones did."""

    max_runs: int = DEFAULT_RUNS
    min_runs: int | None = None

    def __post_init__(self) -> None:
        self.min_runs = self.max_runs if self.min_runs is None else self.min_runs
        if self.max_runs < 1 or self.min_runs < 1:
            raise ValueError("min_runs must be at least 1, and so must max_runs")


class DeadlineReference:
    """What a deadline may count from."""

    class TYPES:
        """When references are evaluated."""

        DAGRUN_CREATED: tuple[type, ...] = (
            DagRunLogicalDateDeadline,
            FixedDatetimeDeadline,
            AverageRuntimeDeadline,
        )
        DAGRUN_QUEUED: tuple[type, ...] = (DagRunQueuedAtDeadline,)
        DAGRUN: tuple[type, ...] = DAGRUN_CREATED + DAGRUN_QUEUED

    DAGRUN_LOGICAL_DATE = DagRunLogicalDateDeadline()
    DAGRUN_QUEUED_AT = DagRunQueuedAtDeadline()

    @classmethod
    def FIXED_DATETIME(cls, dt: datetime) -> FixedDatetimeDeadline:
        return FixedDatetimeDeadline(dt)

    @classmethod
    def AVERAGE_RUNTIME(cls, max_runs: int = 0, min_runs: int | None = None) -> AverageRuntimeDeadline:
        return AverageRuntimeDeadline(max_runs or DEFAULT_RUNS, min_runs)


def deadline_reference(when: Any = None) -> Any:
    """Register a class as `DeadlineReference.NAME`. A DAG that uses it is refused: it would need the database."""

    def register(reference: type) -> type:
        setattr(DeadlineReference, reference.__name__, reference())
        return reference

    return register(when) if isinstance(when, type) else register


class VariableInterval(NamedTuple):
    """An interval that is the value of a variable, in seconds. It is read when the file is loaded."""

    key: str


class Callback:
    """A function, or its import path, with the arguments that it gets besides the context."""

    def __init__(self, callback_callable: Callable[..., Any] | str, kwargs: dict[str, Any] | None = None) -> None:
        if not callable(callback_callable) and not _is_dotted(callback_callable):
            raise ImportError(f"expected a function or its import path, got: {callback_callable!r}")
        if "context" in (kwargs or {}):
            raise ValueError("the argument `context` of a callback is made by the engine")
        self.callback = callback_callable
        self.kwargs = dict(kwargs or {})

    @property
    def path(self) -> str:
        if isinstance(self.callback, str):
            return self.callback
        return f"{self.callback.__module__}.{self.callback.__qualname__}"


class AsyncCallback(Callback):
    """A callback that is awaited."""

    def __init__(self, callback_callable: Callable[..., Any] | str, kwargs: dict[str, Any] | None = None) -> None:
        super().__init__(callback_callable, kwargs)
        if not isinstance(callback_callable, str) and not _is_awaitable(callback_callable):
            raise AttributeError(f"expected an `async` function or a notifier, got: {callback_callable!r}")


class SyncCallback(Callback):
    """A callback that is called."""

    def __init__(
        self,
        callback_callable: Callable[..., Any] | str,
        kwargs: dict[str, Any] | None = None,
        executor: str | None = None,
    ) -> None:
        super().__init__(callback_callable, kwargs)
        self.executor = executor


@dataclass(eq=False)
class DeadlineAlert:
    """Call the callback if a run is not done when the interval after the reference has passed."""

    reference: Any
    interval: timedelta | VariableInterval
    callback: Any
    name: str | None = field(default=None)

    def __post_init__(self) -> None:
        if not isinstance(self.callback, AsyncCallback | SyncCallback):
            raise ValueError(
                f"expected the callback of a deadline to be an AsyncCallback or a SyncCallback, got: {self.callback!r}"
            )
        if not isinstance(self.interval, timedelta | VariableInterval):
            raise TypeError(f"expected the interval of a deadline to be a timedelta, got: {self.interval!r}")


def alerts_of(dag: Any) -> dict[str, DeadlineAlert]:
    """The deadline alerts of a DAG by the names of their deadlines."""
    given = dag.deadline or ()
    alerts = [given] if isinstance(given, DeadlineAlert) else list(given)
    named: dict[str, DeadlineAlert] = {}
    for number, alert in enumerate(alerts, start=1):
        if not isinstance(alert, DeadlineAlert):
            raise TypeError(f"expected `deadline` of DAG `{dag.dag_id}` to be of DeadlineAlerts, got: {alert!r}")
        name = alert.name or f"deadline {number}"
        named[name if name not in named else f"{name} ({number})"] = alert
    return named


def _is_dotted(path: Any) -> bool:
    return isinstance(path, str) and "." in path and all(part.isidentifier() for part in path.strip().split("."))


def _is_awaitable(callback: Callable[..., Any]) -> bool:
    is_notifier = isinstance(callback, type) and issubclass(callback, BaseNotifier)
    return is_notifier or inspect.iscoroutinefunction(callback) or hasattr(callback, "__await__")
