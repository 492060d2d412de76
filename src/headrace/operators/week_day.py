"""Days of the week, by number or by name."""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum
from typing import Any

from headrace.errors import did_you_mean


class WeekDay(IntEnum):
    """The days as ISO 8601 counts them."""

    MONDAY = 1
    TUESDAY = 2
    WEDNESDAY = 3
    THURSDAY = 4
    FRIDAY = 5
    SATURDAY = 6
    SUNDAY = 7

    @classmethod
    def get_weekday_number(cls, week_day_str: str) -> WeekDay:
        """The day with this English name, in any case."""
        name = week_day_str.strip().upper()
        if name not in cls.__members__:
            hint = did_you_mean(name, cls.__members__)
            raise AttributeError(f"there is no day of the week `{week_day_str}`" + (f", {hint}" if hint else ""))
        return cls[name]

    @classmethod
    def convert(cls, day: str | WeekDay) -> int:
        """The number of a day."""
        return day if isinstance(day, WeekDay) else cls.get_weekday_number(day)

    @classmethod
    def validate_week_day(cls, week_day: Any) -> set[int]:
        """The numbers of one day or of several."""
        if isinstance(week_day, str | WeekDay):
            return {cls.convert(week_day)}
        if not isinstance(week_day, Iterable):
            raise TypeError(f"expected a day of the week or several, got: {week_day!r}")
        return {cls.convert(day) for day in week_day}
