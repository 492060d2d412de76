"""Waits a moment, under load, for results that are about to arrive: one transaction serves them all."""

from __future__ import annotations

import time

from headrace.executor import Executor
from headrace.handoff import TaskResult

_CROWD = 2
"""With at least so many other tries under way, results that come fast are committed together."""
_LEAST_SECONDS = 0.003
"""For that they are waited for as long as the last transaction took, but at least so long, as far as the agent allows.
The more it costs, because the database is slow or others hold its locks, the more of them share the next one."""


class Gathering:
    """Told of every transaction, it decides how long the next one waits."""

    def __init__(self, executor: Executor, slots: int, most_seconds: float) -> None:
        self._executor = executor
        self._slots = slots
        self._most_seconds = most_seconds
        self._committed_at = 0.0
        self._seconds = min(_LEAST_SECONDS, most_seconds)

    def took(self, seconds: float) -> None:
        """How long the transaction took."""
        self._seconds = min(max(seconds, _LEAST_SECONDS), self._most_seconds)

    def ended(self) -> None:
        """All that follows from the transaction has been done."""
        self._committed_at = time.monotonic()

    def more(self, present: int, under_way: int) -> list[TaskResult]:
        """What arrives beside the results that are present, while so many other tries are under way."""
        began = time.monotonic()
        if under_way < _CROWD or began - self._committed_at > self._patience():
            return []
        gathered: list[TaskResult] = []
        while present + len(gathered) < under_way and (left := began + self._patience() - time.monotonic()) > 0:
            gathered += self._executor.poll(left)
        return gathered

    def _patience(self) -> float:
        """With enough taken ahead to keep the slots busy meanwhile, nobody is in a hurry."""
        is_covered = 2 * len(self._executor.waiting()) > self._slots
        return self._most_seconds if is_covered else self._seconds
