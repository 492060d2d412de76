"""Instants at which calendars are difficult, and a slow way to tell which instants a cron expression means."""

from __future__ import annotations

import zoneinfo
from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import pairwise

from hypothesis import strategies as st

from headrace.timetable.cron import Dialect, parse_cron

ZONES = sorted(zoneinfo.available_timezones() - {"localtime", "Factory"})
YEARS = range(1970, 2061)
MINUTE = timedelta(minutes=1)
DAY = timedelta(days=1)


@cache
def changes(zone: str, year: int) -> tuple[datetime, ...]:
    """The instants of a year at which a zone has another offset than a second before."""
    moments = [datetime(year, 1, 1, tzinfo=UTC) + DAY * number for number in range(367)]
    return tuple(
        _between(zone, before, after)
        for before, after in pairwise(moments)
        if offset(zone, before) != offset(zone, after)
    )


def _between(zone: str, before: datetime, after: datetime) -> datetime:
    while after - before > timedelta(seconds=1):
        middle = before + timedelta(seconds=int((after - before).total_seconds() / 2))
        before, after = (middle, after) if offset(zone, middle) == offset(zone, before) else (before, middle)
    return after


def offset(zone: str, instant: datetime) -> timedelta:
    found = instant.astimezone(zoneinfo.ZoneInfo(zone)).utcoffset()
    assert found is not None
    return found


def local(zone: str, instant: datetime) -> datetime:
    """What clocks show, without a zone."""
    return instant.astimezone(zoneinfo.ZoneInfo(zone)).replace(tzinfo=None)


@st.composite
def difficult(draw: st.DrawFn) -> tuple[str, datetime]:
    """A zone and an instant near a change of its clocks, a leap day, the end of a year or of 32 bits."""
    zone, year = draw(st.sampled_from(ZONES)), draw(st.sampled_from(YEARS))
    edges = [
        *changes(zone, year),
        datetime(year, 2, 28, tzinfo=UTC),
        datetime(year, 12, 31, tzinfo=UTC),
        datetime(2038, 1, 19, 3, 14, 8, tzinfo=UTC),
    ]
    # The first of them is what a failing example is reduced to, so it is the one that fails most.
    minutes = draw(st.integers(-3 * 24 * 60, 3 * 24 * 60))
    return zone, draw(st.sampled_from(edges)) + timedelta(minutes=minutes, seconds=draw(st.sampled_from([0, 0, 1, 59])))


def meant(expression: str, dialect: Dialect, zone: str, begin: datetime, end: datetime) -> list[datetime]:
    """Every instant between two that an expression means, found by looking at each matching wall time."""
    found: set[datetime] = set()
    for pattern in parse_cron(expression, dialect):
        is_twice = dialect == "airflow" and pattern.is_every_hour
        for wall in pattern.after((begin - 2 * DAY).replace(tzinfo=None)):
            if wall > (end + 2 * DAY).replace(tzinfo=None):
                break
            found.update(_instants(wall, zone, is_twice=is_twice))
    return sorted(instant for instant in found if begin <= instant <= end)


def _instants(wall: datetime, zone: str, *, is_twice: bool) -> list[datetime]:
    """When clocks show a time: both times or the last one; if never, as if they had not been put forward yet."""
    noon = wall.replace(tzinfo=UTC)
    offsets = {offset(zone, noon + timedelta(hours=hours)) for hours in (-26, -13, 0, 13, 26)}
    real = sorted(noon - one for one in offsets if local(zone, noon - one) == wall)
    if not real:
        skipped = next(change for change in _near(zone, noon) if _skips(zone, change, wall))
        return [noon - offset(zone, skipped - timedelta(seconds=1))]
    return real if is_twice else real[-1:]


def _near(zone: str, instant: datetime) -> list[datetime]:
    years = {(instant + days * DAY).year for days in (-2, 0, 2)}
    return [change for year in sorted(years) for change in changes(zone, year)]


def _skips(zone: str, change: datetime, wall: datetime) -> bool:
    utc = change.replace(tzinfo=None)
    return utc + offset(zone, change - timedelta(seconds=1)) <= wall < utc + offset(zone, change)
