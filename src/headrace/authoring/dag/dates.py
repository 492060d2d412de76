"""Dates of the kind that DAG files expect."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any


def to_pendulum(instant: datetime | None) -> Any:
    """The datetime type that DAG files expect."""
    if instant is None:
        return None
    # Most tasks never look at a date, and pendulum costs more than the rest of a task process together.
    import pendulum

    return pendulum.instance(instant)


def to_plain(moment: datetime) -> datetime:
    """The same instant as an ordinary datetime in UTC, without the habits of a subclass."""
    utc = moment.astimezone(UTC)
    return datetime(utc.year, utc.month, utc.day, utc.hour, utc.minute, utc.second, utc.microsecond, tzinfo=UTC)
