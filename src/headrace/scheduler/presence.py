"""Announces a scheduler in the store, so that people can see who is there, and keeps its clock right."""

from __future__ import annotations

import os
import socket
from datetime import datetime
from functools import partial

from headrace.clock import Clock, to_micros
from headrace.metrics.catalogue import LEASES_LOST, LEASES_RENEWED
from headrace.processes import place
from headrace.scheduler.options import SchedulerOptions
from headrace.store import Store, Transaction, Turn, extend_lease, find_turn, register, resign


class Presence:
    """A scheduler's own entry among the processes. It holds no tasks: losing the lease costs nothing but the entry."""

    name = "presence"

    def __init__(self, store: Store, options: SchedulerOptions) -> None:
        self._store = store
        self._name = options.name or f"{socket.gethostname()}:{os.getpid()}"
        self._lease = round(options.lease_seconds * 1_000_000)
        self._projects = options.projects
        self._has_left = False
        self.id: int | None = None
        self.turn = Turn()
        """Among the schedulers, as it was when the lease was last renewed."""
        LEASES_LOST.expect("scheduler")

    def tick(self, now: datetime) -> int:
        """Enter, or renew the lease. There is never anything left to do."""
        if not self._has_left and not self._renew(to_micros(now)):
            self.id, self.turn = self._store.transact(partial(self._enter, now=to_micros(now)))
        return 0

    def leave(self, now: datetime) -> None:
        self._has_left = True
        if self.id is not None:
            self._store.transact(partial(resign, agent_id=self.id, now=to_micros(now)))
            self.id = None

    def _renew(self, now: int) -> bool:
        if self.id is None:
            return False
        is_held, self.turn = self._store.transact(partial(self._extend, agent_id=self.id, now=now))
        (LEASES_RENEWED if is_held else LEASES_LOST).add("scheduler")
        return is_held

    def _enter(self, tx: Transaction, now: int) -> tuple[int, Turn]:
        agent_id = register(
            tx, kind="scheduler", name=self._name, place=place(), pid=os.getpid(), slots=0, queues=(), now=now,
            lease_micros=self._lease, projects=self._projects,
        )  # fmt: skip
        return agent_id, find_turn(tx, "scheduler", agent_id, now)

    def _extend(self, tx: Transaction, agent_id: int, now: int) -> tuple[bool, Turn]:
        is_held = extend_lease(tx, agent_id, now, self._lease)
        return is_held, find_turn(tx, "scheduler", agent_id, now)


class ClockCorrector:
    """Keeps the system's clock at the database's time, so that hosts with wrong clocks agree."""

    name = "clock corrector"

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    def tick(self, now: datetime) -> int:
        """Measure and correct."""
        self._store.correct(self._clock)
        return 0
