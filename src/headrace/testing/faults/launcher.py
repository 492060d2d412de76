"""`python -m headrace.testing.faults.launcher agent …`: a command on a host that is strange, or broken on purpose.

Only the harness starts it, and only here these variables mean anything. `HARNESS_HOST` gives the process a host of its
own, so that nobody can see from outside that it is dead; `HARNESS_CLOCK_SECONDS` says by how much that host's clock is
wrong; `HARNESS_BREAK` takes one of the engine's guarantees away, to see that the harness notices.
"""

from __future__ import annotations

import itertools
import os
import runpy
import socket
from collections import deque
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta, tzinfo
from pathlib import Path
from types import ModuleType

from headrace import clock
from headrace.agent import exchange, registration
from headrace.errors import StoreUnreachableError
from headrace.scheduler import run_starter
from headrace.state import HELD, Task
from headrace.store import (
    Committed,
    NewRun,
    Report,
    RunGraph,
    Transaction,
    apply_results,
    create_runs,
    extend_lease,
    held_tasks,
    results,
    store,
)
from headrace.testing.faults.sightings import note_that_it_happened

_REPEATED = 20
_LOST = 7
_FOLDER = Path(os.environ["LOAD_FOLDER"])


def live_on(host: str) -> None:
    """Have another name than this machine. It is asked for once, and not before the command starts."""
    socket.gethostname = lambda: host


def set_clock(wrong: timedelta) -> None:
    """What the engine reads from this host's clock is wrong by so much."""

    class WrongTime(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> datetime:  # type: ignore[override]
            return datetime.now(tz) + wrong

    _replace(clock, "datetime", WrongTime)
    _replace(store, "datetime", WrongTime)


def without_fence() -> None:
    """Results count for whatever try is under way."""

    def accepts(task: Task, fence: int) -> bool:
        return task.state in HELD

    _replace(results, "accepts", accepts)


def without_renewal() -> None:
    """An agent that has work believes that it holds its lease, and does not tell the store."""

    def extend(tx: Transaction, agent_id: int, now: int, lease_micros: int, stopping_at: int | None) -> bool:
        return bool(held_tasks(tx, agent_id)) or extend_lease(tx, agent_id, now, lease_micros, stopping_at)

    _replace(registration, "extend_lease", extend)


def without_unique_runs() -> None:
    """Two schedulers that meet at one logical time both start its run."""

    def create_twice(tx: Transaction, wanted: Sequence[NewRun], now: int) -> list[int | None]:
        create_runs(tx, [new._replace(key=f"{new.key}_again", is_repeatable=True) for new in wanted], now)
        return create_runs(tx, wanted, now)

    _replace(run_starter, "create_runs", create_twice)


def tell_twice() -> None:
    """Every result is told twice at once, and again with later ones: what a network may do that answers too late."""
    earlier: deque[Report] = deque(maxlen=_REPEATED)

    def apply(
        tx: Transaction, graph: RunGraph, reports: Sequence[Report], max_tasks: int, asking: Callable[[], None]
    ) -> Committed:
        told = [*earlier, *reports, *reports]
        note_that_it_happened(_FOLDER)
        earlier.extend(reports)
        return apply_results(tx, graph, told, max_tasks, asking)

    _replace(exchange, "apply_results", apply)


def lose_answers() -> None:
    """Now and then a commit has succeeded and nobody is told, as when a connection breaks at that very moment."""
    commit, numbers = Transaction.commit, itertools.count(1)

    def commit_and_lose(self: Transaction) -> None:
        commit(self)
        if next(numbers) % _LOST == 0:
            note_that_it_happened(_FOLDER)
            raise StoreUnreachableError("the harness has lost the answer to a commit")

    _replace(Transaction, "commit", commit_and_lose)


def _replace(module: ModuleType | type, name: str, value: object) -> None:
    """What is not there any more cannot be broken: better that nothing starts than that nothing is broken."""
    getattr(module, name)
    setattr(module, name, value)


BREAKS = {
    "fence": without_fence,
    "renewal": without_renewal,
    "unique_runs": without_unique_runs,
    "repeated_results": tell_twice,
    "lost_answers": lose_answers,
}

if __name__ == "__main__":
    if "HARNESS_HOST" in os.environ:
        live_on(os.environ["HARNESS_HOST"])
    if "HARNESS_CLOCK_SECONDS" in os.environ:
        set_clock(timedelta(seconds=float(os.environ["HARNESS_CLOCK_SECONDS"])))
    for name in os.environ.get("HARNESS_BREAK", "").split():
        BREAKS[name]()
    runpy.run_module("headrace.cli", run_name="__main__", alter_sys=True)
