"""What goes wrong in a cluster: processes that die between two statements, clocks that disagree, tries that live on.

The store, the agents and the services are the real ones; only what is around them is made of these.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from random import Random
from typing import Literal, TypeVar

from headrace.clock import Clock
from headrace.errors import HeadraceError, StoreUnreachableError
from headrace.executor.verdicts import not_begun
from headrace.handoff import TaskRequest, TaskResult
from headrace.store import Database, News, Store, Transaction
from headrace.store.news import NOTHING
from headrace.store.wakeups import Wakeups

T = TypeVar("T")

Moment = Literal["before", "inside", "after", "read"]
Boundary = Callable[[Moment], None]
"""Called around every transaction of a node: it may raise `Crash` or `Away`, or let other nodes run."""


class Crash(BaseException):
    """The process is gone, wherever it was. No handler of the code under test may stop it."""


class Away(StoreUnreachableError):
    """The database cannot be reached for a moment, or its answer was lost."""


class NodeWakeups(Wakeups):
    """What a node's commits were said to be news of."""

    told = NOTHING

    def announce(self, news: News = News.ALL) -> None:
        self.told |= news
        super().announce(news)

    def take(self) -> News:
        """What was told since the last call."""
        told, self.told = self.told, NOTHING
        return told


class NodeStore(Store):
    """The store as one node of a cluster sees it."""

    wakeups: NodeWakeups

    def __init__(self, database: Database, boundary: Boundary) -> None:
        self.database = database
        self.wakeups = NodeWakeups(database)
        self.around: Callable[[Transaction], None] = lambda tx: None
        """Called with each transaction that may write, before its work."""
        self.mistakes: list[HeadraceError] = []
        """What the code under test raised and perhaps swallowed; a healthy engine raises nothing but `Away`."""
        self._boundary = boundary

    @contextmanager
    def begin(self) -> Iterator[Transaction]:
        self._boundary("before")
        with super().begin() as tx:
            self.around(tx)
            yield tx
            self._boundary("inside")
        self._boundary("after")

    @contextmanager
    def read(self, *, gives_up: bool = False) -> Iterator[Transaction]:
        with super().read(gives_up=gives_up) as tx:
            yield tx
        self._boundary("read")

    def transact(self, work: Callable[[Transaction], T]) -> T:
        def crashing(tx: Transaction) -> T:
            self.around(tx)
            result = work(tx)
            self._boundary("inside")
            return result

        self._boundary("before")
        try:
            result = super().transact(crashing)
        except Away:
            raise
        except HeadraceError as error:
            self.mistakes.append(error)
            raise
        self._boundary("after")
        return result


class SkewedClock:
    """A node's own clock, which is somewhat wrong."""

    def __init__(self, true: Clock, offset: timedelta) -> None:
        self._true = true
        self._offset = offset

    def now(self) -> datetime:
        return self._true.now() + self._offset


class SimulatedProcessors:
    """Busy or idle by chance, and for a while."""

    count = 2

    def __init__(self, random: Random) -> None:
        self._random = random
        self._is_busy = False

    def idle_share(self) -> float:
        self._is_busy = self._is_busy != (self._random.random() < 0.3)
        return 0.0 if self._is_busy else 1.0


@dataclass
class Execution:
    """One try as its process sees it."""

    request: TaskRequest
    result: TaskResult
    ends_at: datetime
    is_delivered: bool = False
    """Whether somebody was told how it ended."""

    @property
    def claim(self) -> tuple[int, int]:
        return self.request.task_id, self.request.fence

    def stop(self, now: datetime) -> None:
        if self.ends_at > now:
            self.result = TaskResult(task_id=self.request.task_id, fence=self.request.fence, outcome="stopped")
            self.ends_at = now


Decide = Callable[[TaskRequest], tuple[float, TaskResult]]
"""How long a try takes and how it ends."""


@dataclass
class SimulatedExecutor:
    """Runs requests in simulated time."""

    clock: Clock
    decide: Decide
    slots: int
    executions: dict[tuple[int, int], Execution]
    """Of all executors of the cluster."""
    present: dict[tuple[int, int], Execution] = field(default_factory=dict)
    line: dict[tuple[int, int], TaskRequest] = field(default_factory=dict)
    """What waits for a free slot."""
    unbegun: list[TaskResult] = field(default_factory=list)

    def free_slots(self) -> int:
        return max(0, self.slots - len(self.present) - len(self.line))

    def submit(self, requests: Sequence[TaskRequest]) -> None:
        self.line.update(((request.task_id, request.fence), request) for request in requests)
        self._begin()

    def _begin(self) -> None:
        while self.line and len(self.present) < self.slots:
            request = self.line.pop(next(iter(self.line)))
            seconds, result = self.decide(request)
            execution = Execution(request, result, self.clock.now() + timedelta(seconds=seconds))
            self.present[execution.claim] = self.executions[execution.claim] = execution

    def poll(self, timeout_seconds: float | None) -> list[TaskResult]:
        now = self.clock.now()
        ended = [execution for execution in self.present.values() if execution.ends_at <= now]
        for execution in ended:
            del self.present[execution.claim]
            execution.is_delivered = True
        self._begin()
        unbegun, self.unbegun = self.unbegun, []
        return [*unbegun, *(execution.result for execution in ended)]

    def wake(self) -> None:
        """Nobody waits here."""

    def cancel(self, task_id: int, fence: int) -> None:
        if (task_id, fence) in self.present:
            self.present[task_id, fence].stop(self.clock.now())
        elif (task_id, fence) in self.line:
            self.unbegun.append(not_begun(self.line.pop((task_id, fence))))

    def halt(self, number: signal.Signals) -> int:
        """The thread that would call it is not simulated."""
        return 0

    def running(self) -> list[tuple[int, int]]:
        return [*self.present, *self.line, *((result.task_id, result.fence) for result in self.unbegun)]

    def waiting(self) -> list[tuple[int, int]]:
        return list(self.line)

    def close(self, grace_seconds: float) -> None:
        self.line.clear()
        self.present.clear()
