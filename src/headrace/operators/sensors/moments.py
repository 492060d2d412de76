"""Waiting for a moment: a date, a time of day, a while after the run's interval, a day of the week."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from datetime import time as time_of_day
from typing import Any, ClassVar

from headrace.authoring.dag import Context
from headrace.authoring.dag.triggers import StartTriggerArgs
from headrace.operators.instants import date_of_run, instant_of, zone_of_dag
from headrace.operators.options import default_deferrable
from headrace.operators.sensors.poking import BaseSensorOperator
from headrace.operators.triggers import DateTimeTrigger, TimeDeltaTrigger
from headrace.operators.week_day import WeekDay

_START_ARGS = StartTriggerArgs(
    trigger_cls="airflow.providers.standard.triggers.temporal.DateTimeTrigger", next_method="execute_complete"
)


class _MomentSensor(BaseSensorOperator):
    """Waits until a moment is past. Subclasses say which."""

    deferrable = False
    end_from_trigger = False

    def moment(self, context: Context) -> datetime:
        raise NotImplementedError(f"{type(self).__name__} has no moment()")

    def poke(self, context: Context) -> bool:
        moment = self.moment(context)
        self.log.info("waiting for %s", moment.isoformat())
        return datetime.now(UTC) > moment

    def execute(self, context: Context) -> Any:
        if not self.deferrable:
            return super().execute(context)
        moment = self.moment(context)
        if datetime.now(UTC) <= moment:
            self.defer(
                trigger=DateTimeTrigger(moment, end_from_trigger=self.end_from_trigger),
                method_name="execute_complete",
                timeout=timedelta(seconds=self.timeout),
            )
        return None

    def execute_complete(self, context: Context, event: Any = None) -> None:
        """Go on after the wait in a trigger: the moment has come."""


class DateTimeSensor(_MomentSensor):
    """Waits until a datetime is past, which may be a template."""

    operator_name = "date_time_sensor"
    shown_fields: ClassVar[Sequence[str]] = ("target_time", *BaseSensorOperator.shown_fields)
    template_fields: Sequence[str] = ("target_time",)

    def __init__(self, *, target_time: str | datetime, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.target_time = target_time

    def moment(self, context: Context) -> datetime:
        return instant_of(self.target_time)


class DateTimeSensorAsync(DateTimeSensor):
    """Like DateTimeSensor, but waits in a trigger and holds no process."""

    operator_name = "date_time_sensor"
    deferrable = True

    def __init__(
        self,
        *,
        start_from_trigger: bool = False,
        end_from_trigger: bool = False,
        trigger_kwargs: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.end_from_trigger = end_from_trigger
        self.start_from_trigger = start_from_trigger
        if start_from_trigger:
            arguments = {"target_time": self.target_time, "end_from_trigger": end_from_trigger}
            self.start_trigger_args = dataclasses.replace(_START_ARGS, trigger_kwargs=arguments)


class TimeSensor(_MomentSensor):
    """Waits until a time of day in the DAG's time zone, on the day on which the task began to wait."""

    operator_name = "time_sensor"

    def __init__(
        self,
        *,
        target_time: time_of_day,
        deferrable: bool | None = None,
        start_from_trigger: bool = False,
        end_from_trigger: bool = False,
        trigger_kwargs: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if not isinstance(target_time, time_of_day) or isinstance(target_time, datetime):
            raise TypeError(f"expected `target_time` of sensor `{self.task_id}` to be a time, got: {target_time!r}")
        self.target_time = target_time
        self.deferrable = default_deferrable() if deferrable is None else deferrable
        self.end_from_trigger = end_from_trigger

    @property
    def target_datetime(self) -> datetime:
        """The time on the present day."""
        return self._on_day_of(datetime.now(UTC))

    def moment(self, context: Context) -> datetime:
        # Not of the present: a wait that goes past midnight must not begin again for the next day.
        return self._on_day_of(context["ti"].first_started_at)

    def _on_day_of(self, instant: datetime) -> datetime:
        zone = zone_of_dag(self)
        return instant_of(datetime.combine(instant.astimezone(zone).date(), self.target_time), zone).astimezone(UTC)


class TimeSensorAsync(TimeSensor):
    """Like TimeSensor, but waits in a trigger and holds no process."""

    operator_name = "time_sensor"

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**{**kwargs, "deferrable": True})


class TimeDeltaSensor(_MomentSensor):
    """Waits until a while after the end of the run's data interval. A number counts minutes."""

    operator_name = "time_delta_sensor"
    template_fields: Sequence[str] = ("delta",)

    def __init__(
        self,
        *,
        delta: timedelta | int | str,
        deferrable: bool | None = None,
        end_from_trigger: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.delta = delta
        self.deferrable = default_deferrable() if deferrable is None else deferrable
        self.end_from_trigger = end_from_trigger

    def moment(self, context: Context) -> datetime:
        begin: datetime = context.get("data_interval_end") or context["dag_run"].run_after
        return begin + _duration(self.delta)


class TimeDeltaSensorAsync(TimeDeltaSensor):
    """Like TimeDeltaSensor, but waits in a trigger and holds no process."""

    operator_name = "time_delta_sensor"

    def __init__(self, *, delta: timedelta | int | str, end_from_trigger: bool = False, **kwargs: Any) -> None:
        super().__init__(delta=delta, end_from_trigger=end_from_trigger, **{**kwargs, "deferrable": True})


class WaitSensor(BaseSensorOperator):
    """Waits for a while, counted from when the task began. A number counts minutes."""

    operator_name = "wait_sensor"
    template_fields: Sequence[str] = ("time_to_wait",)

    def __init__(self, time_to_wait: timedelta | int | str, deferrable: bool | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.time_to_wait = time_to_wait
        self.deferrable = default_deferrable() if deferrable is None else deferrable

    def execute(self, context: Context) -> None:
        wait = _duration(self.time_to_wait)
        if self.deferrable:
            self.defer(trigger=TimeDeltaTrigger(wait, end_from_trigger=True), method_name="execute_complete")
        time.sleep(max(0.0, wait.total_seconds()))

    def execute_complete(self, context: Context, event: Any = None) -> None:
        """Go on after the wait in a trigger."""


class DayOfWeekSensor(BaseSensorOperator):
    """Waits until it is one of these days of the week (UTC), or until the logical date is one of them."""

    operator_name = "day_of_week_sensor"

    def __init__(
        self,
        *,
        week_day: str | WeekDay | Iterable[str] | Iterable[WeekDay],
        use_task_logical_date: bool = False,
        use_task_execution_day: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.week_day = week_day
        self.use_task_logical_date = use_task_logical_date or use_task_execution_day
        self._days = WeekDay.validate_week_day(week_day)

    def poke(self, context: Context) -> bool:
        now = date_of_run(context) if self.use_task_logical_date else datetime.now(UTC)
        self.log.info("it is %s", WeekDay(now.isoweekday()).name)
        return now.isoweekday() in self._days


def _duration(value: timedelta | int | str) -> timedelta:
    return value if isinstance(value, timedelta) else timedelta(minutes=int(value))
