"""Between wall clocks and instants, where clocks are put forward and back.

A wall time that is skipped moves forward by what was skipped: 02:30 becomes 03:30. For one that is repeated,
`Repeated` says which of the two instants count.
"""

from __future__ import annotations

import re
import zoneinfo
from datetime import UTC, datetime, time, timedelta, timezone, tzinfo
from functools import lru_cache
from typing import Literal, NamedTuple

from headrace.errors import DefinitionError, did_you_mean

Repeated = Literal["both", "second"]

# No zone has ever moved its clocks by more than a day, so a change further away than this cannot reorder anything here.
_VICINITY = timedelta(hours=25)
_FIXED_OFFSET = re.compile(r"([+-])(\d\d):?(\d\d)")


class Span(NamedTuple):
    """Smallest and largest offset from UTC around an instant; they differ only near a change of clocks."""

    low: timedelta
    high: timedelta


@lru_cache(maxsize=256)
def zone_of(name: str) -> tzinfo:
    """The time zone of a name like `Asia/Tokyo` or an offset like `+09:00`."""
    offset = _FIXED_OFFSET.fullmatch(name)
    try:
        if offset is not None:
            distance = timedelta(hours=int(offset[2]), minutes=int(offset[3]))
            return timezone(-distance if offset[1] == "-" else distance)
        return zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        raise DefinitionError(
            f"expected a time zone such as `Europe/London`, got: `{name}`",
            hint=did_you_mean(name, zoneinfo.available_timezones()),
        ) from None


def instants(wall: datetime, zone: tzinfo, repeated: Repeated) -> tuple[datetime, ...]:
    """The instants at which a naive wall time comes due, in order: at least one, and two only if it is repeated."""
    before = _offset(wall.replace(tzinfo=zone, fold=0))
    after = _offset(wall.replace(tzinfo=zone, fold=1))
    if before <= after:
        # Equal: an ordinary time. Smaller: skipped, and the old offset moves it forward by what was skipped.
        return ((wall - before).replace(tzinfo=UTC),)
    second = (wall - after).replace(tzinfo=UTC)
    return ((wall - before).replace(tzinfo=UTC), second) if repeated == "both" else (second,)


def next_wall_time(wall: time, since: datetime, zone: tzinfo) -> datetime:
    """The first instant from `since` on at which clocks of a zone show a time of day."""
    day = since.astimezone(zone).date()
    while True:
        for due in instants(datetime.combine(day, wall), zone, "both"):
            if due >= since:
                return due
        day += timedelta(days=1)


def span_at(instant: datetime, zone: tzinfo) -> Span:
    """The offsets that are in use around an instant."""
    span = _span_within(_VICINITY, instant, zone)
    if span.low == span.high:
        return span
    # Clocks that move by an hour mix up the order of times only within an hour of the change.
    return _span_within(span.high - span.low, instant, zone)


def _span_within(distance: timedelta, instant: datetime, zone: tzinfo) -> Span:
    offsets = [_offset(moment.astimezone(zone)) for moment in (instant - distance, instant, instant + distance)]
    return Span(min(offsets), max(offsets))


def _offset(moment: datetime) -> timedelta:
    offset = moment.utcoffset()
    assert offset is not None
    return offset
