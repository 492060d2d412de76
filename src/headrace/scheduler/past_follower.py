"""Has tasks look again that waited for an earlier run, where whoever ended it could not do so itself."""

from __future__ import annotations

from datetime import datetime
from functools import partial

from headrace.clock import to_micros
from headrace.store import Store, follow_past, has_nudges


class PastFollower:
    name = "past follower"

    def __init__(self, store: Store, *, batch_size: int = 200) -> None:
        self._store = store
        self._batch_size = batch_size

    def tick(self, now: datetime) -> int:
        """Returns how many nudges were followed."""
        with self._store.read() as tx:
            if not has_nudges(tx):
                return 0
        return self._store.transact(partial(follow_past, now=to_micros(now), limit=self._batch_size)).found
