"""Has assets watched for as long as something that is not paused is scheduled on them."""

from __future__ import annotations

from datetime import datetime
from functools import partial

from headrace.clock import to_micros
from headrace.store import Store, has_watchers_to_change, keep_watchers


class WatcherKeeper:
    name = "watcher keeper"

    def __init__(self, store: Store) -> None:
        self._store = store

    def tick(self, now: datetime) -> int:
        """Returns how many watchers were begun or ended."""
        with self._store.read() as tx:
            if not has_watchers_to_change(tx):
                return 0
        return self._store.transact(partial(keep_watchers, now=to_micros(now)))
