"""Ends runs that take longer than their workflow allows, and notices what was not done by its deadline."""

from __future__ import annotations

from datetime import datetime
from functools import partial

from headrace.clock import to_micros
from headrace.store import Store, find_overdue, serve_due_deadlines, time_out_attempt


class DeadlineKeeper:
    name = "deadline keeper"

    def __init__(self, store: Store, *, batch_size: int = 100, checks_tasks: bool = True) -> None:
        """Without `checks_tasks`, tasks that are not done in time go unnoticed."""
        self._store = store
        self._batch_size = batch_size
        self._checks_tasks = checks_tasks

    def tick(self, now: datetime) -> int:
        """Returns how many runs were ended and deadlines looked at."""
        at = to_micros(now)
        with self._store.read() as tx:
            overdue = find_overdue(tx, at, self._batch_size)
        ended = 0
        for attempt_id in overdue.attempts:
            committed = self._store.transact(partial(time_out_attempt, attempt_id=attempt_id, now=at))
            ended += len(committed.ended_attempts)
        return ended + (self._notice(at) if overdue.has_deadlines else 0)

    def _notice(self, at: int) -> int:
        work = partial(serve_due_deadlines, now=at, limit=self._batch_size, checks_tasks=self._checks_tasks)
        return self._store.transact(work)
