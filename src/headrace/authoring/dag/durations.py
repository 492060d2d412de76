"""Lengths of time as files write them: a timedelta, or a relativedelta, whose months are not all of one length."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

Duration = Any
"""timedelta or dateutil's relativedelta, which is recognised by its name and not imported."""

_FIXED = ("year", "month", "day", "weekday", "hour", "minute", "second", "microsecond")


def is_duration(value: object) -> bool:
    return isinstance(value, timedelta) or type(value).__name__ == "relativedelta"


def months_and_seconds(value: Duration) -> tuple[int, float]:
    """A length of time as whole months and seconds."""
    if isinstance(value, timedelta):
        return 0, value.total_seconds()
    if not is_duration(value):
        raise ValueError(f"expected a timedelta or a relativedelta, got: {value!r}")
    fixed = [name for name in _FIXED if getattr(value, name) is not None]
    if fixed:
        raise ValueError(f"expected a relativedelta of lengths such as `months=1`, got: {value!r} with `{fixed[0]}`")
    rest = timedelta(
        days=value.days,
        hours=value.hours,
        minutes=value.minutes,
        seconds=value.seconds,
        microseconds=value.microseconds,
    )
    return int(value.years * 12 + value.months), rest.total_seconds()
