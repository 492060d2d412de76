"""How much of each limit is taken, so that no claim exceeds one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from headrace.definition import Node
from headrace.state import HELD, State
from headrace.store.candidates import Candidate
from headrace.store.database import Reply, Transaction
from headrace.store.definitions import Definitions
from headrace.store.run_graph import RunGraph
from headrace.store.sql import Sql

USE = Sql(
    """
    SELECT name, slots, CASE WHEN includes_deferred
             THEN (SELECT coalesce(sum(task.pool_slots), 0) FROM task
                   WHERE task.pool = pool.name AND task.state = 'deferred' AND task.pool_slots > 0) END,
           CAST(NULL AS bigint), CAST(NULL AS bigint), CAST(NULL AS text), 0 FROM pool
    UNION ALL
    SELECT task.pool, CAST(NULL AS integer), sum(task.pool_slots), task.attempt_id, attempt.workflow_id, task.key,
           count(*)
    FROM task JOIN attempt ON attempt.id = task.attempt_id
    WHERE task.state IN ('queued', 'running', 'restarting')
    GROUP BY task.pool, task.attempt_id, attempt.workflow_id, task.key
    UNION ALL
    SELECT CAST(NULL AS text), CAST(NULL AS integer), CAST(NULL AS bigint), CAST(NULL AS bigint), CAST(NULL AS bigint),
           CAST(NULL AS text), 0
    FROM agent WHERE agent.id = :agent_id AND NOT agent.is_lost
    """
)
# Many tasks may wait for triggers, so only those are counted that a limit speaks of.
WAITING = Sql(
    """
    SELECT task.attempt_id, attempt.workflow_id, task.key, count(*)
    FROM task JOIN attempt ON attempt.id = task.attempt_id
    WHERE task.state = 'deferred' AND task.map_index >= -1 AND task.key IN :keys[]
      AND attempt.workflow_id IN :workflow_ids[]
    GROUP BY task.attempt_id, attempt.workflow_id, task.key
    """
)


class Use:
    """How much of each limit is taken, counted from the tasks that are active now."""

    def __init__(self, tx: Transaction, graph: RunGraph, agent_id: int) -> None:
        self._tx = tx
        self._graph = graph
        self._agent_id = agent_id
        self._has_lease = False
        self._definitions = tx.shared(Definitions)
        self._answer: Reply | None = None
        self._asked_after = 0
        """How many of the graph's events the database knew of when it was asked."""
        self._slots: dict[str, int] | None = None
        self._counts_deferred: set[str] = set()
        self._used: Counter[str] = Counter()
        self._active: Counter[tuple[int | None, int | None, str | None]] = Counter()
        self._waiting: Counter[tuple[int | None, int | None, str]] = Counter()
        """Of tasks with limits of their own: how many wait for triggers."""
        self._expected: set[tuple[int, str]] = set()
        self.full_pools: set[str] = set()
        self.full_attempts: set[int] = set()

    @property
    def is_open_to_agent(self) -> bool:
        """An agent that was given up and does not know it yet has no lease under which it could take anything."""
        self._load()
        return self._has_lease

    def expect(self, candidates: Sequence[Candidate]) -> None:
        """Have counted what the limits of these tasks themselves need to know; most tasks have none."""
        limited = {(one.workflow_id, one.task.key) for one in candidates if self._has_limit(one)} - self._expected
        if not limited:
            return
        self._expected |= limited
        self.ask()  # needed in any case, and so they travel together
        workflow_ids, keys = {one[0] for one in limited}, {one[1] for one in limited}
        parameters = {"keys": sorted(keys), "workflow_ids": sorted(workflow_ids)}
        for attempt_id, workflow_id, key, count in [*self._tx.run(WAITING, parameters), *self._newly_waiting()]:
            if (workflow_id, key) in limited:
                self._waiting[(attempt_id, None, key)] += count
                self._waiting[(None, workflow_id, key)] += count

    def _newly_waiting(self) -> Iterator[tuple[int, int, str, int]]:
        """As WAITING, of what the transaction has decided and not written yet."""
        for task, before in self._graph.moved(self._graph.written_moves):
            change = (task.state is State.DEFERRED) - (before == State.DEFERRED)
            if change:
                yield task.attempt_id, self._graph.attempt(task.attempt_id).workflow_id, task.key, change

    def take(self, candidate: Candidate) -> bool:
        """Whether every limit leaves room for it; if so it is counted."""
        if not self._pool_has_room(candidate) or not self._run_has_room(candidate):
            return False
        if not self._task_has_room(candidate):
            return False
        task = candidate.task
        self._used[task.pool] += task.pool_slots
        self._count(task.attempt_id, candidate.workflow_id, task.key, 1)
        return True

    def ask(self) -> Reply:
        """Have it counted, once; to be called after the candidates were asked for, which takes the claim lock."""
        if self._answer is None:
            self._asked_after = self._graph.written_moves
            self._answer = self._tx.ask(USE, {"agent_id": self._agent_id})
        return self._answer

    def _load(self) -> dict[str, int]:
        if self._slots is None:
            self._slots = {}
            for pool, slots, used, attempt_id, workflow_id, key, active in self.ask().rows():
                if pool is None:
                    self._has_lease = True
                    continue
                self._used[pool] += used or 0
                if attempt_id is None:
                    self._slots[pool] = slots
                    self._counts_deferred |= {pool} if used is not None else set()
                else:
                    self._count(attempt_id, workflow_id, key, active)
            self._follow_graph()
        return self._slots

    def _follow_graph(self) -> None:
        """Count what the transaction has decided and the database was not told before it was asked."""
        for task, before in self._graph.moved(self._asked_after):
            change = (task.state in HELD) - (before in HELD)
            deferred = (task.state is State.DEFERRED) - (before == State.DEFERRED)
            self._used[task.pool] += task.pool_slots * (change + deferred * (task.pool in self._counts_deferred))
            self._count(task.attempt_id, self._graph.attempt(task.attempt_id).workflow_id, task.key, change)

    def _count(self, attempt_id: int, workflow_id: int, key: str, active: int) -> None:
        self._active[(attempt_id, None, None)] += active
        self._active[(None, workflow_id, None)] += active
        self._active[(attempt_id, None, key)] += active
        self._active[(None, workflow_id, key)] += active

    def _pool_has_room(self, candidate: Candidate) -> bool:
        pool = candidate.task.pool
        slots = self._load().get(pool, 0)  # a pool that does not exist never has room
        free = slots - self._used[pool]
        if slots < 0 or candidate.task.pool_slots <= free:
            return True
        if free <= 0:
            self.full_pools.add(pool)
        return False  # a narrower task may still fit

    def _run_has_room(self, candidate: Candidate) -> bool:
        of_run = candidate.max_active_tasks_scope == "run"
        scope = (candidate.task.attempt_id, None, None) if of_run else (None, candidate.workflow_id, None)
        if candidate.max_active_tasks is None or self._active[scope] < candidate.max_active_tasks:
            return True
        self.full_attempts.add(candidate.task.attempt_id)
        return False

    def _task_has_room(self, candidate: Candidate) -> bool:
        """A task that waits for a trigger is not active, but still is one of those that its own limit counts."""
        task, node = candidate.task, self._node(candidate)
        if node is None:
            return True
        in_run, in_workflow = (
            self._active[scope] + self._waiting[scope]
            for scope in ((task.attempt_id, None, task.key), (None, candidate.workflow_id, task.key))
        )
        return (node.max_active_per_run is None or in_run < node.max_active_per_run) and (
            node.max_active_per_workflow is None or in_workflow < node.max_active_per_workflow
        )

    def _has_limit(self, candidate: Candidate) -> bool:
        node = self._node(candidate)
        return node is not None and (node.max_active_per_run is not None or node.max_active_per_workflow is not None)

    def _node(self, candidate: Candidate) -> Node | None:
        return self._definitions.version(self._tx, candidate.workflow_version_id).nodes.get(candidate.task.key)
