"""Numbers that loops keep beside their work: counters, gauges and histograms, each in any number of labelled series.

Counting is an addition under a lock that nobody waits for. Nothing here knows who reads the numbers, or whether anybody
does.
"""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, NamedTuple

Kind = Literal["counter", "gauge", "histogram"]
Labels = tuple[str, ...]

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 900.0, 3600.0)
"""Upper bounds for what may take from a blink to an hour."""
BRIEF_SECONDS = (0.001, 0.005, 0.025, 0.1, 0.5, 2.5, 10.0)
"""Upper bounds for one turn of a loop, which has many series."""


class Sample(NamedTuple):
    """One number of one series."""

    labels: Labels
    value: float
    suffix: str = ""
    """What follows the family's name: `_bucket`, `_sum` or `_count` of a histogram."""
    bound: str | None = None
    """The upper bound of a bucket."""


class Family:
    """All series of one name. A bare family has no numbers of its own: they are read when somebody asks for them."""

    def __init__(self, name: str, kind: Kind, meaning: str, labels: Labels = ()) -> None:
        self.name = name
        self.kind = kind
        self.meaning = meaning
        self.labels = labels

    def samples(self) -> Iterator[Sample]:
        """The numbers as they are now."""
        return iter(())


class Reading(NamedTuple):
    """Numbers of a family that were looked up for whoever asked."""

    family: Family
    samples: Sequence[Sample]


class _Numbers(Family):
    """One number per series."""

    def __init__(self, name: str, kind: Kind, meaning: str, labels: Labels) -> None:
        super().__init__(name, kind, meaning, labels)
        self._lock = threading.Lock()
        self._values: dict[Labels, float] = {} if labels else {(): 0.0}

    def samples(self) -> Iterator[Sample]:
        with self._lock:
            values = list(self._values.items())
        return (Sample(labels, value) for labels, value in values)

    def value(self, *labels: str) -> float:
        """The number of one series; 0 if nothing was noted."""
        return self._values.get(labels, 0.0)


class Counter(_Numbers):
    """Only ever grows. Its name ends with `_total`."""

    def __init__(self, name: str, meaning: str, labels: Labels = (), values: Sequence[str] = ()) -> None:
        """`values` of its one label are there from the start."""
        super().__init__(name, "counter", meaning, labels)
        for value in values:
            self.expect(value)

    def expect(self, *labels: str) -> None:
        """Tell 0 until something is counted: Prometheus sees no increase in a series that begins with 1."""
        if labels not in self._values:
            with self._lock:
                self._values.setdefault(labels, 0.0)

    def add(self, *labels: str, count: float = 1) -> None:
        """Count something, by the values of the labels."""
        with self._lock:
            self._values[labels] = self._values.get(labels, 0.0) + count


class Gauge(_Numbers):
    """Goes up and down."""

    def __init__(self, name: str, meaning: str, labels: Labels = ()) -> None:
        super().__init__(name, "gauge", meaning, labels)

    def set(self, value: float, *labels: str) -> None:
        """Note how it is now."""
        with self._lock:
            self._values[labels] = value


class Histogram(Family):
    """How often something took how long."""

    def __init__(self, name: str, meaning: str, labels: Labels = (), bounds: Sequence[float] = SECONDS) -> None:
        super().__init__(name, "histogram", meaning, labels)
        self._bounds = tuple(bounds)
        self._lock = threading.Lock()
        self._series: dict[Labels, _Series] = {} if labels else {(): _Series(len(self._bounds))}

    def observe(self, value: float, *labels: str) -> None:
        """Note one value, by the values of the labels."""
        place = bisect_left(self._bounds, value)
        with self._lock:
            series = self._series.get(labels)
            if series is None:
                series = self._series[labels] = _Series(len(self._bounds))
            series.counts[place] += 1
            series.sum += value

    def count(self, *labels: str) -> int:
        """How many values were noted in one series."""
        series = self._series.get(labels)
        return 0 if series is None else sum(series.counts)

    def samples(self) -> Iterator[Sample]:
        with self._lock:
            taken = [(labels, list(series.counts), series.sum) for labels, series in self._series.items()]
        for labels, counts, total in taken:
            yield from self._cumulated(labels, counts)
            yield Sample(labels, total, "_sum")
            yield Sample(labels, sum(counts), "_count")

    def _cumulated(self, labels: Labels, counts: Iterable[int]) -> Iterator[Sample]:
        so_far = 0
        for bound, count in zip((*map(repr, self._bounds), "+Inf"), counts, strict=True):
            so_far += count
            yield Sample(labels, so_far, "_bucket", bound)


class _Series:
    __slots__ = ("counts", "sum")

    def __init__(self, bounds: int) -> None:
        self.counts = [0] * (bounds + 1)
        self.sum = 0.0
