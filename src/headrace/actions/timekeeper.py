"""What time owns in a local run: due retries and polls, time limits, runs that wait, processes that died.

The scheduler's own services, without the one that starts scheduled runs: somebody who runs one workflow does not want
to start others.
"""

from __future__ import annotations

import threading

from headrace.clock import Clock, to_micros
from headrace.errors import StoreError
from headrace.scheduler import DeadlineKeeper, PastFollower, Rescuer, Reviver, RunActivator, Service, Waker
from headrace.scheduler.rescuer import Patience
from headrace.store import Store, next_due

_PATIENCE_SECONDS = 5.0


class Timekeeper:
    """Ticks when something is due or was announced, and tells how long there is nothing to do."""

    def __init__(self, store: Store, clock: Clock, poll_seconds: float, *, check_slas: bool = True) -> None:
        self._store = store
        self._clock = clock
        self._poll_micros = round(poll_seconds * 1_000_000)
        self._services: list[Service] = [
            Waker(store),
            DeadlineKeeper(store, checks_tasks=check_slas),
            PastFollower(store),
            RunActivator(store),
        ]
        # Somebody who stops a run with Ctrl-Z and goes on later should not find its tasks given up.
        patience = Patience(_PATIENCE_SECONDS, poll_seconds)
        self._sweepers: list[Service] = [Rescuer(store, patience=patience), Reviver(store)]
        self._is_news = threading.Event()
        self._is_news.set()
        self._due_at = self._sweep_at = 0
        store.wakeups.subscribe(self._is_news.set)

    def wait_seconds(self) -> float:
        """How long until the next tick is worth while, unless there is news before."""
        if self._is_news.is_set():
            return 0.0
        return max(0.0, (min(self._due_at, self._sweep_at) - self._now()) / 1e6)

    def tick(self) -> bool:
        """Do what is due, if anything may be. Whether it looked."""
        now = self._now()
        if not self._is_news.is_set() and now < min(self._due_at, self._sweep_at):
            return False
        self._is_news.clear()
        try:
            self._serve(now)
        except StoreError:
            self._is_news.set()
            raise
        return True

    def _serve(self, now: int) -> None:
        services = list(self._services)
        if now >= self._sweep_at:
            services += self._sweepers
            self._sweep_at = now + self._poll_micros
        for service in services:
            service.tick(self._clock.now())
        with self._store.read() as tx:
            due = next_due(tx, now)
        self._due_at = self._sweep_at if due is None else due

    def _now(self) -> int:
        return to_micros(self._clock.now())
