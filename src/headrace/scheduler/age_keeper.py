"""Stops runs that are older, or wait for an older task, than the installation allows."""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import partial

from headrace.clock import to_micros
from headrace.store import Store, attempts_with_old_tasks, old_attempts, time_out_attempt


class AgeKeeper:
    name = "age keeper"

    def __init__(self, store: Store, *, run_seconds: float | None, task_seconds: float | None) -> None:
        self._store = store
        self._run_seconds = run_seconds
        self._task_seconds = task_seconds

    @property
    def has_limits(self) -> bool:
        return self._run_seconds is not None or self._task_seconds is not None

    def tick(self, now: datetime) -> int:
        """Returns how many runs were stopped."""
        stopped = 0
        for attempt_id in self._too_old(now):
            committed = self._store.transact(partial(time_out_attempt, attempt_id=attempt_id, now=to_micros(now)))
            stopped += len(committed.ended_attempts)
        return stopped

    def _too_old(self, now: datetime) -> list[int]:
        found: set[int] = set()
        with self._store.read() as tx:
            if self._run_seconds is not None:
                found.update(old_attempts(tx, to_micros(now - timedelta(seconds=self._run_seconds))))
            if self._task_seconds is not None:
                found.update(attempts_with_old_tasks(tx, to_micros(now - timedelta(seconds=self._task_seconds))))
        return sorted(found)
