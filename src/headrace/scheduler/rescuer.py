"""Takes tasks from agents that are gone: silent for too long, dead on this machine, or stopped."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime
from functools import partial

from headrace.clock import to_micros
from headrace.metrics.catalogue import PROCESSES_GIVEN_UP
from headrace.processes import is_alive, place
from headrace.state import State
from headrace.store import (
    Store,
    Transaction,
    expire_leases,
    give_up,
    has_expired_leases,
    live_processes,
    rescue_everything,
)

_log = logging.getLogger("headrace.scheduler")

_FATES = {State.UP_FOR_RETRY: "up for retry", State.SCHEDULED: "up for retry", State.NONE: "up for retry"}


class Patience:
    """Gives others time to renew their leases after this scheduler was away itself.

    Whatever kept it away, a database that was restarted or a machine that slept, may have kept them away, too, and what
    they run should not pay for that.
    """

    def __init__(self, seconds: float, usual_gap_seconds: float) -> None:
        """`usual_gap_seconds` are between two looks; with that many seconds more, it was away."""
        self._micros = round(seconds * 1_000_000)
        self._gap = round(usual_gap_seconds * 1_000_000)
        self._looked_at: int | None = None
        self._until: int | None = None

    def is_asked_for(self, now: int) -> bool:
        """Called with each look that succeeded. Each absence is given its time once, however slow the looks are."""
        before, self._looked_at = self._looked_at, now
        if self._until is None:
            if self._micros and before is not None and now - before > self._gap + self._micros:
                self._until = now + self._micros
        elif now >= self._until:
            self._until = None
        return self._until is not None


class Rescuer:
    """Each task is tried again or fails by its own settings; what its agent still reports changes nothing."""

    name = "rescuer"

    def __init__(self, store: Store, *, batch_size: int = 200, patience: Patience | None = None) -> None:
        self._store = store
        self._batch_size = batch_size
        self._patience = patience or Patience(0.0, 0.0)

    def tick(self, now: datetime) -> int:
        """Returns how many processes were given up and tasks rescued."""
        at = to_micros(now)
        gone = {**self._give_up_dead(at), **self._give_up_silent(at)}
        rescued, errands = rescue_everything(self._store, at, self._batch_size)
        for agent_id in sorted({*gone, *(one.agent_id for one in rescued)}):
            tasks = [one for one in rescued if one.agent_id == agent_id]
            why = gone.get(agent_id) or f"agent `{tasks[0].agent}` {'stopped' if tasks[0].has_resigned else 'is gone'}"
            _log.warning("%s: %s", why, describe([one.task.state for one in tasks]))
        return len(gone) + len(rescued) + errands

    def _give_up_dead(self, now: int) -> dict[int, str]:
        """Processes of this place that are dead need no lease to run out."""
        with self._store.read() as tx:
            dead = [one for one in live_processes(tx, place()) if not is_alive(one.pid)]
        if dead:
            self._store.transact(partial(_give_up, agent_ids=[one.id for one in dead], now=now))
            PROCESSES_GIVEN_UP.add("dead", count=len(dead))
        return {one.id: f"{one.kind} `{one.name}` (process {one.pid}) is dead" for one in dead}

    def _give_up_silent(self, now: int) -> dict[int, str]:
        with self._store.read() as tx:
            has_expired = has_expired_leases(tx, now)
        if self._patience.is_asked_for(now) or not has_expired:
            return {}
        silent = self._store.transact(partial(expire_leases, now=now))
        PROCESSES_GIVEN_UP.add("silent", count=len(silent))
        return {
            one.id: f"{one.kind} `{one.name}` silent for {one.silent_seconds:.0f} s (limit {one.limit_seconds:g} s)"
            for one in silent
        }


def describe(states: Sequence[State]) -> str:
    """What became of the tasks of an agent, as the end of a sentence."""
    if not states:
        return "it held no tasks"
    fates = Counter(_FATES.get(state, str(state)) for state in states)
    whole = "its task" if len(states) == 1 else f"its {len(states)} tasks"
    if len(fates) == 1:
        return f"{whole} {_verb(next(iter(fates)), len(states))}"
    return f"of {whole} {', '.join(f'{count} {_verb(fate, count)}' for fate, count in sorted(fates.items()))}"


def _verb(fate: str, count: int) -> str:
    if fate == State.FAILED:
        return "failed"
    return f"is {fate}" if count == 1 else f"are {fate}"


def _give_up(tx: Transaction, agent_ids: Iterable[int], now: int) -> None:
    for agent_id in agent_ids:
        give_up(tx, agent_id, now)
