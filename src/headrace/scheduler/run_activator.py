"""Starts queued runs whose time has come, or for which their workflow's limit has room again."""

from __future__ import annotations

from datetime import datetime
from functools import partial

from headrace.clock import to_micros
from headrace.store import Store, start_queued_runs, waiting_workflows


class RunActivator:
    name = "run activator"

    def __init__(self, store: Store, *, batch_size: int = 100) -> None:
        self._store = store
        self._batch_size = batch_size

    def tick(self, now: datetime) -> int:
        """Returns how many workflows had runs to start."""
        with self._store.read() as tx:
            waiting = waiting_workflows(tx, to_micros(now), self._batch_size)
        return sum(self._activate(workflow_id, to_micros(now)) for workflow_id in waiting)

    def _activate(self, workflow_id: int, now: int) -> bool:
        committed = self._store.transact(partial(start_queued_runs, workflow_id=workflow_id, now=now))
        return committed is not None and bool(
            committed.scheduled or committed.scheduled_inline or committed.ended_attempts
        )
