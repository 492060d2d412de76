"""Waiting for a point in time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

from headrace.authoring.dag.triggers import BaseTrigger, TaskSuccessEvent, TriggerEvent

_LONGEST_SLEEP_SECONDS = 60.0
"""A machine's clock may be set while the trigger sleeps."""


class DateTimeTrigger(BaseTrigger):
    """Fires at a moment, given as an aware datetime or, as `target_time`, in ISO 8601."""

    def __init__(
        self,
        moment: datetime | None = None,
        *,
        target_time: datetime | str | None = None,
        end_from_trigger: bool = False,
    ) -> None:
        super().__init__()
        if (moment is None) == (target_time is None):
            raise TypeError("expected DateTimeTrigger to get either `moment` or `target_time`")
        self.target_time = target_time
        self.end_from_trigger = end_from_trigger
        self._moment = None if moment is None else _in_utc(moment)

    @property
    def moment(self) -> datetime:
        if self._moment is None:
            self._moment = _parsed(self.target_time)
        return self._moment

    def serialize(self) -> tuple[str, dict[str, Any]]:
        when = {"target_time": self.target_time} if self._moment is None else {"moment": self._moment}
        path = "airflow.providers.standard.triggers.temporal.DateTimeTrigger"
        return path, {**when, "end_from_trigger": self.end_from_trigger}

    async def run(self) -> AsyncIterator[TriggerEvent]:
        while (left := (self.moment - datetime.now(UTC)).total_seconds()) > 0:
            await asyncio.sleep(min(left, _LONGEST_SLEEP_SECONDS))
        yield TaskSuccessEvent() if self.end_from_trigger else TriggerEvent(self.moment)


class TimeDeltaTrigger(DateTimeTrigger):
    """Fires after a while, counted from when it is made."""

    def __init__(self, delta: timedelta, *, end_from_trigger: bool = False) -> None:
        super().__init__(datetime.now(UTC) + delta, end_from_trigger=end_from_trigger)


def _in_utc(moment: datetime) -> datetime:
    if not isinstance(moment, datetime):
        raise TypeError(f"expected `moment` to be a datetime, got: {moment!r}")
    if moment.tzinfo is None:
        raise ValueError(f"expected `moment` to have a time zone, got: {moment.isoformat()}")
    return moment.astimezone(UTC)


def _parsed(value: datetime | str | None) -> datetime:
    moment = datetime.fromisoformat(value) if isinstance(value, str) else value
    if moment is None:
        raise TypeError("expected `target_time` to be a datetime or its ISO 8601 form, got: None")
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
