"""A fault: how it is brought about, what the engine promises then, and what came of it."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from headrace.testing.faults.arena import Arena
from headrace.testing.faults.checker import Kind, Wrong
from headrace.testing.faults.history import History, offered_at
from headrace.testing.faults.record import Line

END_SECONDS = 90.0
"""How long after the last fault every run must have ended."""


class Interrupted(NamedTuple):
    """Executions that a fault ended, or waits that it caused."""

    lines: Sequence[Line]
    at: float
    waits: Sequence[float] = ()
    times: int = 1
    """How often it has happened, seen from outside."""


NOBODY = Interrupted((), 0.0)
Inject = Callable[[Arena], Interrupted]
Check = Callable[[Arena], list[Wrong]]


def _nothing_more(arena: Arena) -> list[Wrong]:
    return []


@dataclass(frozen=True)
class Fault:
    """One kind of thing that goes wrong."""

    name: str
    promise: str
    inject: Inject
    not_promised: frozenset[Kind] = frozenset()
    """What may happen here: shown, and no failure."""
    stores: tuple[str, ...] = ("postgres", "sqlite")
    environment: Mapping[str, str] = field(default_factory=dict)
    """For one member of each kind in the cluster in which it happens."""
    task_seconds: float = 0.2
    """How long the tasks of the load take."""
    is_possible: bool = True
    """Whether this user on this machine can bring it about."""
    is_long: bool = False
    """Once is enough."""
    pause_seconds: tuple[float, float] = (0.0, 0.0)
    """Between two of them the cluster works for at least and at most so long."""
    check: Check = _nothing_more
    """What must hold besides, where nothing else goes wrong."""


class Recovery(NamedTuple):
    """How long something waited after a fault, in seconds."""

    started: float
    """Until its next try, or whatever was to happen, began."""
    offered: float | None = None
    """Until the store offered it to agents again. The rest is the wait for a slot, behind tasks of higher priority."""


class Outcome(NamedTuple):
    """What came of faults in one arena."""

    name: str
    injected: int
    runs: int
    tasks: int
    wrongs: list[Wrong]
    failures: list[Wrong]
    """Those of them that break a promise."""
    recoveries: list[Recovery]

    def count(self, kind: Kind) -> int:
        return Counter(wrong.kind for wrong in self.wrongs)[kind]


def suffer(arena: Arena, faults: Sequence[Fault], rounds: Iterable[object]) -> Outcome:
    """Give the cluster work and have each of the faults happen once a round; then check everything."""
    interrupted = []
    for _ in rounds:
        for fault in faults:
            arena.load.wave(arena.cluster)
            arena.wait_for_work()
            interrupted.append(fault.inject(arena))
            arena.replenish()
            arena.work_on(random.uniform(*fault.pause_seconds))
    return conclude(arena, faults, interrupted)


def conclude(arena: Arena, faults: Sequence[Fault], interrupted: Sequence[Interrupted]) -> Outcome:
    """Let everything end, and look."""
    arena.load.finish(arena.cluster, END_SECONDS)
    wrongs = [*arena.load.check(arena.cluster.store), *_undead(arena), *_surprises(arena)]
    if len(faults) == 1:
        wrongs += faults[0].check(arena)
    allowed = frozenset[Kind]().union(*(fault.not_promised for fault in faults))
    history = History.read(arena.cluster.store)
    return Outcome(
        " + ".join(fault.name for fault in faults),
        sum(one.times for one in interrupted),
        len(history.runs),
        len(history.executions),
        wrongs,
        [wrong for wrong in wrongs if wrong.kind not in allowed],
        [recovery for one in interrupted for recovery in _recoveries(arena, history, one)],
    )


def _undead(arena: Arena) -> list[Wrong]:
    """Every run has ended, so that nothing of the load may be alive."""
    until = time.monotonic() + 5.0
    while (alive := arena.load.record.under_way()) and time.monotonic() < until:
        time.sleep(0.05)
    return [Wrong("stuck", f"process {line.pid} of {line.name} is still alive") for line in alive]


def _surprises(arena: Arena) -> list[Wrong]:
    """Whatever goes wrong around it, a process says it in a sentence."""
    surprised = [member for member in arena.cluster.members() if "Traceback (most recent call last)" in member.stderr]
    return [Wrong("illegal", f"{member.name} was surprised:\n{member.stderr}") for member in surprised]


def _recoveries(arena: Arena, history: History, one: Interrupted) -> Iterator[Recovery]:
    yield from (Recovery(seconds) for seconds in one.waits)
    record = arena.load.record
    # The record is kept on the monotonic clock, the store goes by that of the machine.
    fault_at = round((one.at + time.time() - time.monotonic()) * 1e6)
    for line in one.lines:
        start = record.next_start(line.name, one.at)
        if line.at and start is not None and not record.came_to_its_end(line):
            at = offered_at(arena.cluster.store, history.tasks_named(*line.name), fault_at)
            yield Recovery(start - one.at, None if at is None else (at - fault_at) / 1e6)
