"""Wakes what waited for a time: retries, polls, and tries that are over their time limit."""

from __future__ import annotations

from datetime import datetime
from functools import partial

from headrace.clock import to_micros
from headrace.store import Store, has_due_tasks, wake_due_tasks


class Waker:
    name = "waker"

    def __init__(self, store: Store, *, batch_size: int = 500) -> None:
        self._store = store
        self._batch_size = batch_size

    def tick(self, now: datetime) -> int:
        """Returns how many tasks were moved."""
        at, moved = to_micros(now), 0
        while True:
            with self._store.read() as tx:
                if not has_due_tasks(tx, at):
                    return moved
            woken = self._store.transact(partial(wake_due_tasks, now=at, limit=self._batch_size))
            moved += woken.moved
            if woken.found < self._batch_size or woken.moved == 0:
                return moved
