"""Date functions of DAG files. Pendulum is imported when one of them is called, not when it is imported."""

from __future__ import annotations

import datetime as _datetime
from typing import Any

from headrace.authoring.dag.dates import to_pendulum
from headrace.definition import CRON_PRESETS

utc = _datetime.UTC
cron_presets = dict(CRON_PRESETS)


def utcnow() -> Any:
    """The present as an aware pendulum datetime."""
    return to_pendulum(_datetime.datetime.now(utc))


def days_ago(n: int, hour: int = 0, minute: int = 0, second: int = 0, microsecond: int = 0) -> Any:
    """Midnight (or another time) n days ago, in UTC."""
    today = _datetime.datetime.now(utc).replace(hour=hour, minute=minute, second=second, microsecond=microsecond)
    return to_pendulum(today - _datetime.timedelta(days=n))


def datetime(*args: Any, **kwargs: Any) -> _datetime.datetime:
    """An aware datetime, in UTC unless said otherwise."""
    return _datetime.datetime(*args, **{"tzinfo": utc, **kwargs})


def parse(string: str, timezone: Any = None, *, strict: bool = False) -> Any:
    """A datetime out of text."""
    # Only files that parse dates pay for it.
    import pendulum

    return pendulum.parse(string, tz=timezone or "UTC", strict=strict)


def is_localized(value: _datetime.datetime) -> bool:
    return value.utcoffset() is not None


def make_aware(value: _datetime.datetime, timezone: Any = None) -> _datetime.datetime:
    """A naive datetime in a time zone."""
    if is_localized(value):
        raise ValueError(f"expected a naive datetime, got: {value.isoformat()}")
    return value.replace(tzinfo=timezone or utc)


def make_naive(value: _datetime.datetime, timezone: Any = None) -> _datetime.datetime:
    """The wall clock's time in a time zone, without saying so."""
    if not is_localized(value):
        raise ValueError(f"expected an aware datetime, got: {value.isoformat()}")
    return value.astimezone(timezone or utc).replace(tzinfo=None)


def convert_to_utc(value: _datetime.datetime | None) -> Any:
    """The same instant in UTC; a naive datetime is taken for UTC."""
    if value is None:
        return None
    return to_pendulum((value if is_localized(value) else make_aware(value)).astimezone(utc))


def coerce_datetime(value: _datetime.datetime | None, tz: Any = None) -> Any:
    """An aware pendulum datetime."""
    if value is None:
        return None
    return to_pendulum(value if is_localized(value) else make_aware(value, tz))
