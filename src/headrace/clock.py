"""Where time comes from: the system's clock, or one that a test moves by hand.

Instants are aware UTC datetimes in the program and whole microseconds since 1970 in the database.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import NamedTuple, Protocol

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


class Clock(Protocol):
    def now(self) -> datetime:
        """The present, aware and in UTC."""
        ...


class SystemClock:
    """The machine's clock, plus the offset that was measured against the database's."""

    def __init__(self) -> None:
        self.offset = timedelta(0)

    def now(self) -> datetime:
        return datetime.now(UTC) + self.offset


class ManualClock:
    """A clock that stands still until a test moves it."""

    def __init__(self, start: datetime) -> None:
        self._now = start.astimezone(UTC)

    def now(self) -> datetime:
        return self._now

    def advance(self, delta: timedelta) -> None:
        self._now += delta


class Reading(NamedTuple):
    """What another clock said, at some moment after a look at this machine's."""

    before: datetime
    other: datetime
    took: timedelta
    """From that look until the answer was there, on a clock that nobody sets."""

    @property
    def offset(self) -> timedelta:
        """How far this machine's clock is behind the other one, wrong by half of what it took at most."""
        return self.other - (self.before + self.took / 2)


def best_offset(readings: Iterable[Reading]) -> timedelta:
    """How far this machine's clock is behind the other one, by the reading that can be wrong by least."""
    return min(readings, key=lambda one: one.took).offset


def to_micros(instant: datetime) -> int:
    """The database's form of an instant."""
    return (instant - _EPOCH) // _MICROSECOND


def from_micros(micros: int) -> datetime:
    """An instant out of the database's form."""
    return _EPOCH + micros * _MICROSECOND


def iso(instant: datetime | None) -> str | None:
    """ISO 8601 in UTC with a `Z`, as every output of Headrace prints instants."""
    if instant is None:
        return None
    return instant.astimezone(UTC).isoformat().replace("+00:00", "Z")
