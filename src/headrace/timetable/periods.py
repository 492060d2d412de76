"""Periods of the calendar, hours to years: where one begins, what its parts are, and how keys are written for them.

A period is known by its naive beginning; what a time zone makes of that is decided where keys are read and written.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, tzinfo
from typing import NamedTuple

from headrace.errors import DefinitionError, did_you_mean
from headrace.timetable.walltime import instants

_DIGITS = {"%Y": r"\d{4}", **dict.fromkeys(("%m", "%d", "%H", "%M", "%S", "%V", "%U", "%W"), r"\d{2}")}
_QUARTER = "{quarter}"
_PART = re.compile(r"%[YmdHMSVUW]|\{[^}]*\}")


class Unit(NamedTuple):
    """One kind of period."""

    start: Callable[[datetime], datetime]
    """The beginning of the period that a time lies in."""
    key_format: str
    """How keys are written if nobody says otherwise."""


def _midnight(moment: datetime) -> datetime:
    return moment.replace(hour=0, minute=0, second=0, microsecond=0)


UNITS = {
    "hour": Unit(lambda at: at.replace(minute=0, second=0, microsecond=0), "%Y-%m-%dT%H"),
    "day": Unit(_midnight, "%Y-%m-%d"),
    "week": Unit(lambda at: _midnight(at - timedelta(days=at.weekday())), "%Y-%m-%d (W%V)"),
    "month": Unit(lambda at: _midnight(at.replace(day=1)), "%Y-%m"),
    "quarter": Unit(lambda at: _midnight(at.replace(month=at.month - (at.month - 1) % 3, day=1)), f"%Y-Q{_QUARTER}"),
    "year": Unit(lambda at: _midnight(at.replace(month=1, day=1)), "%Y"),
}


def unit_named(name: object) -> Unit:
    found = UNITS.get(str(name))
    if found is None:
        hint = did_you_mean(str(name), UNITS)
        raise DefinitionError(f"expected a period to be one of {', '.join(UNITS)}, got: `{name}`", hint=hint)
    return found


def localized(wall: datetime, zone: tzinfo) -> datetime:
    """A wall time of a zone; one that is skipped moves forward, of one that is repeated it is the second."""
    return instants(wall.replace(tzinfo=None), zone, "second")[-1].astimezone(zone)


@dataclass(frozen=True, slots=True)
class KeyFormat:
    """How the beginning of a period is written as a key, and read back. `strftime` with `{quarter}`."""

    text: str
    _pattern: re.Pattern[str] | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        # `strptime` knows neither quarters nor weeks that stand beside a date.
        if _QUARTER in self.text or "%V" in self.text:
            object.__setattr__(self, "_pattern", _pattern_of(self.text))

    def write(self, moment: datetime) -> str:
        quarter = str((moment.month - 1) // 3 + 1)
        return moment.strftime(self.text).replace(_QUARTER, quarter)

    def read(self, key: str) -> datetime:
        """The time that a key stands for. Raises a ValueError if it is not of this form."""
        if self._pattern is None:
            return datetime.strptime(key, self.text)
        match = self._pattern.fullmatch(key)
        if match is None:
            raise ValueError(f"expected a key like `{self.text}`, got: `{key}`")
        found = {name: int(digits) for name, digits in match.groupdict().items()}
        month = found["quarter"] * 3 - 2 if "quarter" in found else found.get("m", 1)
        return datetime(found["Y"], month, found.get("d", 1), found.get("H", 0), found.get("M", 0), found.get("S", 0))


def _pattern_of(text: str) -> re.Pattern[str]:
    parts, names, end = [], [], 0
    for match in _PART.finditer(text):
        part = match[0]
        if part not in _DIGITS and part != _QUARTER:
            raise DefinitionError(f"expected `{text}` to have no placeholder but `{_QUARTER}`, got: `{part}`")
        names.append(part.strip("%{}"))
        parts += [re.escape(text[end : match.start()]), f"(?P<{names[-1]}>{_DIGITS.get(part, '[1-4]')})"]
        end = match.end()
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise DefinitionError(f"expected every part of the key format `{text}` only once, got `{twice}` twice")
    needed = {"Y", "quarter"} if "quarter" in names else {"Y", "m", "d"}
    if not needed <= set(names):
        missing = " and ".join(sorted(_QUARTER if one == "quarter" else f"%{one}" for one in needed - set(names)))
        raise DefinitionError(f"the key format `{text}` does not tell when a period begins: it lacks {missing}")
    return re.compile("".join(parts) + re.escape(text[end:]))


@dataclass(frozen=True, slots=True)
class CalendarWindow:
    """The parts of a period: the minutes of an hour, hours of a day, days of a week or month, months of a quarter."""

    unit: str
    is_backward: bool = False
    """The period that ends with the given time, in place of the one that begins with it."""

    def members(self, start: datetime) -> list[datetime]:
        """The beginnings of the parts, in order."""
        if self.unit == "month":
            return self._days_of_month(start)
        if self.unit in _MONTHS:
            return [_months_later(_first_of_month(start), step) for step in self._steps(_MONTHS[self.unit])]
        count, length = _FIXED[self.unit]
        return [start + step * length for step in self._steps(count)]

    def _steps(self, count: int) -> range:
        return range(1 - count, 1) if self.is_backward else range(count)

    def _days_of_month(self, start: datetime) -> list[datetime]:
        other = _months_later(_first_of_month(start), -1 if self.is_backward else 1)
        return [start + step * timedelta(days=1) for step in self._steps(abs((other - start).days))]


_MONTHS = {"quarter": 3, "year": 12}
_FIXED = {
    "hour": (60, timedelta(minutes=1)),
    "day": (24, timedelta(hours=1)),
    "week": (7, timedelta(days=1)),
}


def _first_of_month(start: datetime) -> datetime:
    if start.day != 1:
        raise ValueError(f"expected the first day of a month, got: {start.date().isoformat()}")
    return start


def _months_later(start: datetime, months: int) -> datetime:
    years, month = divmod(start.month - 1 + months, 12)
    return start.replace(year=start.year + years, month=month + 1)


@dataclass(frozen=True, slots=True)
class SegmentWindow:
    """A fixed set of keys, whatever the period."""

    segments: tuple[str, ...]

    def members(self, start: object) -> list[str]:
        return list(self.segments)


def in_utc(moment: datetime) -> datetime:
    return moment.astimezone(UTC)
