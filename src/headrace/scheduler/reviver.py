"""Looks again at runs in which nothing moves: they go on, or they fail because nothing ever will."""

from __future__ import annotations

import logging
from datetime import datetime
from functools import partial

from headrace.clock import to_micros
from headrace.store import Store, revive_attempt, stalled_attempts

_log = logging.getLogger("headrace.scheduler")


class Reviver:
    name = "reviver"

    def __init__(self, store: Store, *, batch_size: int = 100) -> None:
        self._store = store
        self._batch_size = batch_size

    def tick(self, now: datetime) -> int:
        """Returns how many runs were revived or ended."""
        with self._store.read() as tx:
            stalled = stalled_attempts(tx, limit=self._batch_size)
        return sum(self._revive(attempt_id, to_micros(now)) for attempt_id in stalled)

    def _revive(self, attempt_id: int, now: int) -> bool:
        committed = self._store.transact(partial(revive_attempt, attempt_id=attempt_id, now=now))
        if committed is None:
            return False  # it moved meanwhile
        fate = "it ended" if committed.ended_attempts else "it goes on"
        _log.warning("attempt %d had come to a standstill: %s", attempt_id, fate)
        return True
