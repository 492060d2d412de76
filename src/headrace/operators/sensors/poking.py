"""The sensor: a task that looks again and again until it finds what it waits for."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar, TypeVar

from headrace.authoring.dag import BaseOperator, Context
from headrace.authoring.dag.exceptions import (
    AirflowException,
    AirflowFailException,
    AirflowRescheduleException,
    AirflowSensorTimeout,
    AirflowSkipException,
    AirflowTaskTimeout,
    TaskDeferralTimeout,
)
from headrace.operators.options import default_sensor_timeout

MODES = ("poke", "reschedule")
_LONGEST_WAIT_SECONDS = timedelta.max.total_seconds() - 1

S = TypeVar("S", bound="type[BaseSensorOperator]")


class PokeReturnValue:
    """What a poke found: whether the wait is over, and then the task's result."""

    def __init__(self, is_done: bool, xcom_value: Any = None) -> None:
        self.is_done = is_done
        self.xcom_value = xcom_value

    def __bool__(self) -> bool:
        return self.is_done


class BaseSensorOperator(BaseOperator):
    """Calls `poke` until it returns something true.

    Between two pokes, mode `poke` sleeps and keeps its process and its slot; mode `reschedule` ends the process and is
    called again later, in the same try. `timeout` is looked at after each poke that found nothing.
    """

    valid_modes: Sequence[str] = MODES
    shown_fields: ClassVar[Sequence[str]] = ("mode", "poke_interval", "timeout")
    ui_color = "#e6f1f2"

    def __init__(
        self,
        *,
        poke_interval: timedelta | float = 60,
        timeout: timedelta | float | None = None,
        soft_fail: bool = False,
        mode: str = "poke",
        exponential_backoff: bool = False,
        max_wait: timedelta | float | None = None,
        silent_fail: bool = False,
        never_fail: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.poke_interval = self._seconds("poke_interval", poke_interval)
        self.timeout = self._seconds("timeout", default_sensor_timeout() if timeout is None else timeout)
        self.soft_fail = soft_fail
        self.mode = self._mode(mode)
        self.exponential_backoff = exponential_backoff
        self.max_wait = None if max_wait is None else timedelta(seconds=self._seconds("max_wait", max_wait))
        self.silent_fail = silent_fail
        self.never_fail = never_fail
        if soft_fail and never_fail:
            raise ValueError(f"sensor `{self.task_id}` has both soft_fail and never_fail, expected one of them")

    @property
    def reschedule(self) -> bool:
        """Whether it gives its slot back between two pokes."""
        return self.mode == "reschedule"

    def poke(self, context: Context) -> bool | PokeReturnValue:
        """Look once; something true ends the wait."""
        raise NotImplementedError(f"{type(self).__name__} has no poke()")

    def execute(self, context: Context) -> Any:
        """Poke until there is something to find or the time is over."""
        wait = _Wait(self, context)
        while True:
            found = self._poke(context)
            if found:
                self.log.info("sensor `%s` found what it waits for", self.task_id)
                return found.xcom_value if isinstance(found, PokeReturnValue) else None
            if wait.elapsed() > self.timeout:
                self._give_up()
            pause = wait.next_pause()
            if self.reschedule:
                raise AirflowRescheduleException(datetime.now(UTC) + timedelta(seconds=pause))
            time.sleep(pause)

    def resume_execution(self, next_method: str, next_kwargs: dict[str, Any] | None, context: Context) -> Any:
        """Go on after a deferral; a wait in a trigger fails and is forgiven like one in pokes."""
        try:
            return super().resume_execution(next_method, next_kwargs, context)
        except TaskDeferralTimeout as error:
            self._excuse(error)
            raise AirflowSensorTimeout(self._too_long) from error
        except AirflowSkipException:
            raise
        except AirflowException as error:
            self._excuse(error)
            raise

    def _poke(self, context: Context) -> bool | PokeReturnValue:
        try:
            return self.poke(context)
        except (AirflowSensorTimeout, AirflowTaskTimeout, AirflowFailException) as error:
            self._excuse(error)
            raise
        except (AirflowSkipException, AirflowRescheduleException):
            raise
        except Exception as error:
            if self.silent_fail:
                self.log.exception("the poke of sensor `%s` failed, which counts as nothing found", self.task_id)
                return False
            if self.never_fail:
                self._excuse(error)
            raise

    def _excuse(self, error: BaseException) -> None:
        """Skip instead of failing, if that is wanted."""
        for name in ("soft_fail", "never_fail"):
            if getattr(self, name):
                raise AirflowSkipException(f"skipped because of {name}: {error}") from error

    def _give_up(self) -> None:
        raise (AirflowSkipException if self.soft_fail else AirflowSensorTimeout)(self._too_long)

    @property
    def _too_long(self) -> str:
        return f"sensor `{self.task_id}` found nothing within its timeout of {self.timeout:g} s"

    def _seconds(self, name: str, value: Any) -> float:
        seconds = value.total_seconds() if isinstance(value, timedelta) else value
        if isinstance(seconds, bool) or not isinstance(seconds, int | float) or seconds < 0:
            raise ValueError(
                f"expected `{name}` of sensor `{self.task_id}` to be a timedelta or a number of seconds of at least 0,"
                f" got: {value!r}"
            )
        return seconds

    def _mode(self, mode: str) -> str:
        if mode not in self.valid_modes:
            expected = " or ".join(self.valid_modes)
            raise ValueError(f"expected `mode` of sensor `{self.task_id}` to be {expected}, got: {mode!r}")
        return mode


class _Wait:
    """The time that a sensor has waited, and how long it pauses next."""

    def __init__(self, sensor: BaseSensorOperator, context: Context) -> None:
        self._sensor = sensor
        instance = context["ti"]
        self._began = time.monotonic()
        self._before = instance.waited_seconds if sensor.reschedule else 0.0
        """In mode `reschedule` the series of all tries counts, in mode `poke` only this one."""
        self._started_at = instance.first_started_at if sensor.reschedule else instance.started_at
        self._pokes = 0

    def elapsed(self) -> float:
        return self._before + time.monotonic() - self._began

    def next_pause(self) -> float:
        sensor = self._sensor
        self._pokes += 1
        if not sensor.exponential_backoff:
            return sensor.poke_interval
        pause = self._growing_pause(self._pokes_so_far() if sensor.reschedule else self._pokes)
        pause = min(pause, max(0.0, sensor.timeout - int(self.elapsed())))
        return pause if sensor.max_wait is None else min(pause, sensor.max_wait.total_seconds())

    def _pokes_so_far(self) -> int:
        """Each poke of mode `reschedule` is a process of its own; the time that went by tells how many there were."""
        number, total, elapsed = 0, 0.0, self.elapsed()
        while total <= elapsed:
            number += 1
            total += self._growing_pause(number)
        return number

    def _growing_pause(self, number: int) -> float:
        """Twice as long each time and spread by a hash, so that sensors that began together do not poke together."""
        sensor = self._sensor
        least = max(int(sensor.poke_interval * 2.0 ** min(number - 2, 60)), 1)
        dag_id = sensor.dag.dag_id if sensor.dag is not None else ""
        seed = f"{dag_id}#{sensor.task_id}#{self._started_at}#{number}"
        digest = int(hashlib.sha1(seed.encode(), usedforsecurity=False).hexdigest(), 16)
        return min(least + digest % least, _LONGEST_WAIT_SECONDS)


def poke_mode_only(sensor_class: S) -> S:
    """Decorates a sensor that keeps something between its pokes and therefore cannot be rescheduled."""
    if not (isinstance(sensor_class, type) and issubclass(sensor_class, BaseSensorOperator)):
        raise ValueError(f"poke_mode_only decorates sensors, got: {sensor_class!r}")
    sensor_class.valid_modes = ("poke",)
    return sensor_class
