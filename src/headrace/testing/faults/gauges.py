"""What the processes of a cluster need as time goes by, and how long tasks wait for them."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

import psutil

from headrace.store import Store
from headrace.store.sql import Sql
from headrace.testing.faults.cluster import Cluster
from headrace.testing.faults.members import module_of
from headrace.testing.faults.table import percentile

MEGABYTE = 2**20
_WARM = 1 / 3
"""The part of a process's life after which it has loaded what it needs."""
_GROWTH, _GROWTH_MEGABYTES = 1.15, 8.0
_MORE_DESCRIPTORS = 8
# Inline steps are part of a commit and wait for nobody.
HANDOFFS = Sql(
    """
    SELECT started_at - scheduled_at FROM task
    WHERE isolation <> 'inline' AND started_at >= :since AND started_at < :until AND scheduled_at IS NOT NULL
    """
)


class Reading(NamedTuple):
    at: float
    megabytes: float
    descriptors: int


class Life(NamedTuple):
    """One process from when it was warm to its end, or to the end of the soak."""

    name: str
    seconds: float
    warm: Reading
    last: Reading

    @property
    def is_flat(self) -> bool:
        most = max(self.warm.megabytes * _GROWTH, self.warm.megabytes + _GROWTH_MEGABYTES)
        return self.last.megabytes <= most and self.last.descriptors <= self.warm.descriptors + _MORE_DESCRIPTORS


class Window(NamedTuple):
    """How long tasks waited, from when they could start to when they were handed to a process."""

    tasks: int
    p50: float
    p99: float


class Gauges:
    """Read every few seconds."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._readings: dict[str, list[Reading]] = defaultdict(list)

    def read(self) -> None:
        """Look at every member and at what it has started: zygotes, the process of triggers."""
        for member in self._cluster.members():
            if member.is_running:
                self._note(member.name, psutil.Process(member.pid))
                for process in member.children():
                    self._note(f"{member.name}, {module_of(process)} {process.pid}", process)

    def _note(self, name: str, process: psutil.Process) -> None:
        try:
            reading = Reading(time.monotonic(), process.memory_info().rss / MEGABYTE, process.num_fds())
        except psutil.Error:
            return
        self._readings[name].append(reading)

    def lives(self, shortest_seconds: float) -> Iterator[Life]:
        """Of the processes that were there for so long, those that lived longest first."""
        lives = [self._life(name, readings) for name, readings in self._readings.items()]
        yield from sorted((one for one in lives if one.seconds >= shortest_seconds), key=lambda one: -one.seconds)

    def _life(self, name: str, readings: list[Reading]) -> Life:
        warm = readings[int(len(readings) * _WARM)]
        return Life(name, readings[-1].at - readings[0].at, warm, readings[-1])


def handoffs(store: Store, since: int, until: int) -> Window:
    """Of the tasks that started in this time."""
    with store.read() as tx:
        waits = [row[0] / 1e6 for row in tx.run(HANDOFFS, {"since": since, "until": until})]
    return Window(len(waits), percentile(waits, 50), percentile(waits, 99)) if waits else Window(0, 0.0, 0.0)
