"""Windows of partitions, as DAG files write them: which keys make up a period, and how many of them are enough."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from enum import StrEnum
from typing import Any, ClassVar


class Window:
    """The parts of a period, for `RollupMapper` and `FanOutMapper`."""

    class Direction(StrEnum):
        """Whether the period begins or ends with the key that it is found by."""

        BACKWARD = "backward"
        FORWARD = "forward"

    expected_decoded_type: ClassVar[type] = str
    unit: ClassVar[str] = ""

    def __init__(self, *, direction: Direction = Direction.FORWARD) -> None:
        self.direction = self.Direction(direction)

    def as_data(self) -> dict[str, Any]:
        """As the definition's schedule says it."""
        if type(self).__module__ != __name__:
            raise TypeError(
                f"the window `{type(self).__name__}` is none of Airflow's own: the scheduler runs no code of users"
            )
        backward = {"is_backward": True} if self.direction is self.Direction.BACKWARD else {}
        return {"unit": self.unit, **backward}

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and vars(other) == vars(self)

    def __hash__(self) -> int:
        return hash((type(self), self.direction))


class _Calendar(Window):
    expected_decoded_type = datetime


class HourWindow(_Calendar):
    """The minutes of an hour."""

    unit = "hour"


class DayWindow(_Calendar):
    """The 24 hours of a day."""

    unit = "day"


class WeekWindow(_Calendar):
    """The days of a week."""

    unit = "week"


class MonthWindow(_Calendar):
    """The days of a month."""

    unit = "month"


class QuarterWindow(_Calendar):
    """The months of a quarter."""

    unit = "quarter"


class YearWindow(_Calendar):
    """The months of a year."""

    unit = "year"


class SegmentWindow(Window):
    """A fixed set of keys."""

    def __init__(self, segments: Iterable[str]) -> None:
        super().__init__()
        found = list(segments)
        wrong = next((one for one in found if not isinstance(one, str) or not one), None)
        if not found or wrong is not None:
            raise ValueError(f"expected the segments of SegmentWindow to be words, at least one, got: {found!r}")
        self.segments = sorted(set(found))

    def as_data(self) -> dict[str, Any]:
        return {"segments": self.segments}


class WaitPolicy:
    """How many keys of a window are enough."""

    def at_least(self) -> int | None:
        """So many; negative: all but so many; None: all."""
        raise NotImplementedError

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and vars(other) == vars(self)

    def __hash__(self) -> int:
        return hash((type(self), self.at_least()))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.at_least() or ''})"


class WaitForAll(WaitPolicy):
    """All of them."""

    def at_least(self) -> None:
        return None


class MinimumCount(WaitPolicy):
    """So many; if negative, all but so many."""

    def __init__(self, n: int) -> None:
        if not isinstance(n, int) or n == 0:
            raise ValueError(f"expected MinimumCount to have a number other than 0, got: {n!r}")
        self.n = n

    def at_least(self) -> int:
        return self.n
