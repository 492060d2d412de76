"""Ends runs that take longer than their workflow allows."""

from __future__ import annotations

from datetime import datetime
from functools import partial

from headrace.clock import to_micros
from headrace.store import Store, overdue_attempts, time_out_attempt


class DeadlineKeeper:
    name = "deadline keeper"

    def __init__(self, store: Store, *, batch_size: int = 100) -> None:
        self._store = store
        self._batch_size = batch_size

    def tick(self, now: datetime) -> int:
        """Returns how many runs were ended."""
        at = to_micros(now)
        with self._store.read() as tx:
            overdue = overdue_attempts(tx, at, self._batch_size)
        ended = 0
        for attempt_id in overdue:
            committed = self._store.transact(partial(time_out_attempt, attempt_id=attempt_id, now=at))
            ended += len(committed.ended_attempts)
        return ended
