"""Endless rows of instants, asked from any point in both directions. Ticks know nothing of runs."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from calendar import monthrange
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Protocol

from headrace.timetable.cron import CronPattern
from headrace.timetable.walltime import Repeated, instants, span_at


class Ticks(Protocol):
    def after(self, instant: datetime) -> datetime | None:
        """The first tick later than an instant."""
        ...

    def before(self, instant: datetime) -> datetime | None:
        """The last tick earlier than an instant."""
        ...


@dataclass(frozen=True, slots=True)
class CronTicks:
    """A cron pattern on the wall clock of a time zone.

    Near a change of clocks the order of wall times is not the order of instants (a skipped 02:30 comes after 03:00),
    so the search begins early enough and goes on until no later wall time can be nearer.
    """

    pattern: CronPattern
    zone: tzinfo
    repeated: Repeated

    def after(self, instant: datetime) -> datetime | None:
        best: datetime | None = None
        for wall in self.pattern.after(_naive(instant) + span_at(instant, self.zone).low):
            moments = instants(wall, self.zone, self.repeated)
            if best is not None and _utc(wall - span_at(moments[0], self.zone).high) >= best:
                break
            best = min((moment for moment in (best, *moments) if moment and moment > instant), default=None)
        return best

    def before(self, instant: datetime) -> datetime | None:
        best: datetime | None = None
        for wall in self.pattern.before(_naive(instant) + span_at(instant, self.zone).high):
            moments = instants(wall, self.zone, self.repeated)
            if best is not None and _utc(wall - span_at(moments[0], self.zone).low) <= best:
                break
            best = max((moment for moment in (best, *moments) if moment and moment < instant), default=None)
        return best


@dataclass(frozen=True, slots=True)
class UnionTicks:
    """Every instant on which at least one of several rows has a tick."""

    parts: tuple[Ticks, ...]

    def after(self, instant: datetime) -> datetime | None:
        return min(_known(part.after(instant) for part in self.parts), default=None)

    def before(self, instant: datetime) -> datetime | None:
        return max(_known(part.before(instant) for part in self.parts), default=None)


@dataclass(frozen=True, slots=True)
class IntervalTicks:
    """Elapsed time in equal steps from an anchor, in both directions."""

    anchor: datetime
    step: timedelta

    def after(self, instant: datetime) -> datetime | None:
        return self.anchor + ((instant - self.anchor) // self.step + 1) * self.step

    def before(self, instant: datetime) -> datetime | None:
        return self.anchor - ((self.anchor - instant) // self.step + 1) * self.step


@dataclass(frozen=True, slots=True)
class CalendarTicks:
    """Steps of months and of elapsed time from an anchor on, each from the one before: a month after 31 January is the
    last of February, and a month after that is 28 March. There are none before the anchor."""

    anchor: datetime
    months: int
    rest: timedelta
    _known: list[datetime] = field(default_factory=list, compare=False)
    """From the anchor on, as far as anybody has asked."""

    def after(self, instant: datetime) -> datetime | None:
        known = self._known_until(instant)
        return known[bisect_right(known, instant)]

    def before(self, instant: datetime) -> datetime | None:
        known = self._known_until(instant)
        index = bisect_left(known, instant)
        return known[index - 1] if index else None

    def _known_until(self, instant: datetime) -> list[datetime]:
        if not self._known:
            self._known.append(self.anchor)
        while self._known[-1] <= instant:
            self._known.append(_months_later(self._known[-1], self.months) + self.rest)
        return self._known


@dataclass(frozen=True, slots=True)
class ListedTicks:
    """A list of instants, in order."""

    instants: tuple[datetime, ...]

    def after(self, instant: datetime) -> datetime | None:
        index = bisect_right(self.instants, instant)
        return self.instants[index] if index < len(self.instants) else None

    def before(self, instant: datetime) -> datetime | None:
        index = bisect_left(self.instants, instant)
        return self.instants[index - 1] if index else None


def _months_later(instant: datetime, months: int) -> datetime:
    year, month = divmod(instant.year * 12 + instant.month - 1 + months, 12)
    return instant.replace(year=year, month=month + 1, day=min(instant.day, monthrange(year, month + 1)[1]))


def _naive(instant: datetime) -> datetime:
    return instant.astimezone(UTC).replace(tzinfo=None)


def _utc(naive: datetime) -> datetime:
    return naive.replace(tzinfo=UTC)


def _known(ticks: Iterable[datetime | None]) -> list[datetime]:
    return [tick for tick in ticks if tick is not None]
