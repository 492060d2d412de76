"""Agents take tasks for their free slots, within every limit, and never the same task twice.

Claims of all agents are serialized (on PostgreSQL by an advisory lock that lives until the commit), because limits on
pools and runs cannot be kept by row locks alone. The lock is taken after the attempts' locks.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from headrace.state import INLINE_QUEUE, Task, take
from headrace.store.candidates import Candidate, Candidates, Page, is_open
from headrace.store.database import Transaction
from headrace.store.run_graph import RunGraph
from headrace.store.sql import Sql
from headrace.store.use import Use

IS_ANYTHING_WAITING = Sql(
    """
    SELECT 1 WHERE EXISTS (SELECT 1 FROM task WHERE state = 'scheduled' AND queue IN :queues[])
       OR EXISTS (
           SELECT 1 FROM errand WHERE state = 'waiting' AND (due_at IS NULL OR due_at <= :now) AND queue IN :queues[])
    """
)
DELETE_VALUES = Sql("DELETE FROM value WHERE task_id IN :ids[]")


class Claim(NamedTuple):
    """A task that an agent took."""

    task: Task
    has_stores: bool
    """Whether some task of the attempt has left parameters for others."""


class Claiming:
    """What one transaction takes for an agent: `ask` when it begins, `take` when it has recorded its results.

    The questions travel with those about the results, and what is taken is written with what the results changed: the
    graph's `flush` makes it so, and nobody else claims in between.
    """

    def __init__(
        self, tx: Transaction, graph: RunGraph, agent_id: int, attempt_ids: Collection[int] | None = None
    ) -> None:
        """With `attempt_ids`: only tasks of these attempts, whatever queue they name, also of paused workflows."""
        self._tx = tx
        self._graph = graph
        self._agent_id = agent_id
        self._attempt_ids = attempt_ids
        self._use = Use(tx, graph, agent_id)
        self._pages: dict[str, Page] = {}
        self.refused: set[int] = set()
        """Tasks that some limit keeps back, and so nobody else can take either."""

    def ask(self, queue: str, limit: int, *, is_likely: bool = False) -> None:
        """Ask for the next tasks of a queue. `is_likely`: some will be taken, so all that this needs is asked for."""
        self._pages[queue] = self._candidates(queue).ask(limit)
        if is_likely:
            self._use.ask()

    def take(self, queue: str, limit: int) -> list[Claim]:
        """Take up to `limit` tasks, of those that were asked for and those that this transaction has scheduled."""
        allowed = self._allowed(queue, limit)
        for candidate in allowed:
            for event in take(candidate.task, self._agent_id, self._graph.now):
                self._graph.record(event)
            self._graph.touch(candidate.task)
        # A new execution begins without the results of an earlier one.
        again = [one.task.id for one in allowed if one.task.fence > 1 and one.task.resume is None]
        if again:
            self._tx.write(DELETE_VALUES, {"ids": again})
        return [Claim(one.task, bool(one.has_stores) or self._graph.has_stores(one.task)) for one in allowed]

    def _candidates(self, queue: str) -> Candidates:
        return Candidates(self._tx, self._graph, queue, self._attempt_ids)

    def _allowed(self, queue: str, limit: int) -> list[Candidate]:
        """The next tasks that no limit forbids, in the order in which they should run."""
        candidates, page = self._candidates(queue), self._pages.pop(queue, None)
        waiting = list(candidates.unwritten())
        seen = {one.task.id for one in waiting}
        allowed: list[Candidate] = []
        while len(allowed) < limit:
            found = page.candidates() if page is not None else []
            fresh = [one for one in found if one.task.id not in seen]
            seen.update(one.task.id for one in fresh)
            waiting = sorted((one for one in (*waiting, *fresh) if is_open(one)), key=lambda one: one.order)
            is_all = page is None or page.is_last or not fresh
            # What the database has not told of yet may come before some of those that are known.
            ready = waiting if is_all else [one for one in waiting if one.order <= found[-1].order]
            waiting = waiting[len(ready) :]
            allowed += self._within_limits(queue, ready, limit - len(allowed))
            if is_all:
                break
            page = candidates.ask(limit + len(seen), self._use.full_pools, self._use.full_attempts)
        return allowed

    def _within_limits(self, queue: str, ready: list[Candidate], limit: int) -> list[Candidate]:
        if not ready or not self._use.is_open_to_agent:
            return []
        if queue == INLINE_QUEUE:
            return ready[:limit]  # what runs no code takes no slot of anything, so no limit holds it back
        self._use.expect(ready)
        allowed: list[Candidate] = []
        for candidate in ready:
            if len(allowed) == limit:
                break
            if self._use.take(candidate):
                allowed.append(candidate)
            else:
                self.refused.add(candidate.task.id)
        return allowed


def is_anything_waiting(tx: Transaction, queues: Collection[str], now: int) -> bool:
    """Whether somebody who serves these queues could find a task or an errand, if no limit is in the way."""
    return bool(tx.run(IS_ANYTHING_WAITING, {"queues": list(queues), "now": now}))


def claim_tasks(
    tx: Transaction,
    graph: RunGraph,
    agent_id: int,
    queue: str,
    limit: int,
    attempt_ids: Collection[int] | None = None,
) -> list[Claim]:
    """Take up to `limit` scheduled tasks of a queue under the agent's lease. They are running when this commits."""
    claiming = Claiming(tx, graph, agent_id, attempt_ids)
    claiming.ask(queue, limit)
    claims = claiming.take(queue, limit)
    graph.flush()
    return claims
