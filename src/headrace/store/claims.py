"""Agents take tasks for their free slots, within every limit, and never the same task twice.

Claims of all agents are serialized (on PostgreSQL by an advisory lock that lives until the commit), because limits on
pools and runs cannot be kept by row locks alone. The lock is taken after the attempts' locks and only for the claim.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from typing import NamedTuple

from headrace.definition import Node
from headrace.state import INLINE_QUEUE, Actor, Event, State, Task
from headrace.store.database import Reply, Transaction
from headrace.store.definitions import Definitions
from headrace.store.run_graph import RunGraph
from headrace.store.sql import Sql
from headrace.store.task_rows import SELECTED, to_task

_CANDIDATES = """
    SELECT task.id, task.attempt_id, task.pool, task.pool_slots, task.key, attempt.workflow_id,
           attempt.workflow_version_id, attempt.max_active_tasks, attempt.max_active_tasks_scope, attempt.has_stores
    FROM task
    JOIN attempt ON attempt.id = task.attempt_id
    JOIN workflow ON workflow.id = attempt.workflow_id
    [[postgres: CROSS JOIN (SELECT pg_advisory_xact_lock(7236)) AS claim_lock]]
    WHERE task.state = 'scheduled' AND {scope}
      AND NOT (task.pool IN :full_pools[]) AND NOT (task.attempt_id IN :full_attempts[])
    ORDER BY task.priority DESC, task.turn_at, task.id LIMIT :limit [[postgres: FOR UPDATE OF task SKIP LOCKED]]
    """
CANDIDATES = Sql(_CANDIDATES.format(scope="task.queue = :queue AND NOT workflow.is_paused"))
CANDIDATES_OF_ATTEMPTS = Sql(
    _CANDIDATES.format(scope="task.attempt_id IN :attempt_ids[] AND (task.queue = 'inline') = (:queue = 'inline')")
)
# An agent that was given up and does not know it yet has no lease under which it could take anything.
TAKE = Sql(
    f"""
    UPDATE task SET state = 'running', version = version + 1, fence = fence + 1, agent_id = :agent_id,
           queued_at = :now, first_started_at = coalesce(first_started_at, :now), ended_at = NULL,
           started_at = CASE WHEN resume IS NULL THEN :now ELSE coalesce(started_at, :now) END,
           due_at = CASE WHEN timeout_seconds IS NULL THEN NULL
                    ELSE CASE WHEN resume IS NULL THEN :now ELSE coalesce(started_at, :now) END
                         + CAST((timeout_seconds + :grace_seconds) * 1000000 AS bigint) END
    WHERE id IN :ids[] AND state = 'scheduled'
      AND EXISTS (SELECT 1 FROM agent WHERE agent.id = :agent_id AND NOT agent.is_lost)
    RETURNING {SELECTED}
    """
)
USE = Sql(
    """
    SELECT name, slots, CASE WHEN includes_deferred
             THEN (SELECT sum(task.pool_slots) FROM task
                   WHERE task.pool = pool.name AND task.state = 'deferred' AND task.pool_slots > 0) END,
           CAST(NULL AS bigint), CAST(NULL AS bigint), CAST(NULL AS text), 0 FROM pool
    UNION ALL
    SELECT task.pool, CAST(NULL AS integer), sum(task.pool_slots), task.attempt_id, attempt.workflow_id, task.key,
           count(*)
    FROM task JOIN attempt ON attempt.id = task.attempt_id
    WHERE task.state IN ('queued', 'running', 'restarting')
    GROUP BY task.pool, task.attempt_id, attempt.workflow_id, task.key
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
DELETE_VALUES = Sql("DELETE FROM value WHERE task_id IN :ids[]")

TIMEOUT_GRACE_SECONDS = 30
"""How much later than its agent the scheduler ends a try that is over its time limit."""


class Candidate(NamedTuple):
    id: int
    attempt_id: int
    pool: str
    pool_slots: int
    key: str
    workflow_id: int
    workflow_version_id: int
    max_active_tasks: int | None
    max_active_tasks_scope: str
    has_stores: bool


class Claim(NamedTuple):
    """A task that an agent took."""

    task: Task
    has_stores: bool
    """Whether some task of the attempt has left parameters for others."""


def claim_tasks(
    tx: Transaction,
    graph: RunGraph,
    agent_id: int,
    queue: str,
    limit: int,
    attempt_ids: Collection[int] | None = None,
    is_likely: bool = False,
) -> list[Claim]:
    """Take up to `limit` scheduled tasks of a queue under the agent's lease. They are running when this commits.

    With `attempt_ids`: only tasks of these attempts, whatever queue they name and even if a workflow is paused.
    `is_likely`: the caller knows of tasks that wait, so whatever the claim needs is asked for at once.
    """
    allowed = _allowed(tx, queue, limit, attempt_ids, is_likely)
    if not allowed:
        return []
    parameters = {
        "ids": [candidate.id for candidate in allowed],
        "agent_id": agent_id,
        "now": graph.now,
        "grace_seconds": TIMEOUT_GRACE_SECONDS,
    }
    taken = {task.id: task for task in (to_task(row) for row in tx.run(TAKE, parameters))}
    claims = [Claim(taken[one.id], bool(one.has_stores)) for one in allowed if one.id in taken]
    for task, _ in claims:
        graph.record(_event(task, State.SCHEDULED, State.QUEUED, graph.now))
        graph.record(_event(task, State.QUEUED, State.RUNNING, graph.now))
    # A new execution begins without the results of an earlier one.
    again = [task.id for task, _ in claims if task.fence > 1 and task.resume is None]
    if again:
        tx.write(DELETE_VALUES, {"ids": again})
    return claims


def _event(task: Task, before: State, after: State, now: int) -> Event:
    return Event(task.attempt_id, task.id, before, after, Actor.CLAIM, task.try_number, now)


def _allowed(
    tx: Transaction, queue: str, limit: int, attempt_ids: Collection[int] | None, is_likely: bool
) -> list[Candidate]:
    """The next tasks that no limit forbids, in the order in which they should run."""
    allowed: list[Candidate] = []
    full_pools: set[str] = set()
    full_attempts: set[int] = set()
    seen: set[int] = set()
    use = _Use(tx)
    while len(allowed) < limit:
        asked = limit + len(seen)
        candidates = tx.ask(
            CANDIDATES if attempt_ids is None else CANDIDATES_OF_ATTEMPTS,
            {
                "queue": queue,
                "attempt_ids": sorted(attempt_ids or ()),
                "limit": asked,
                "full_pools": sorted(full_pools),
                "full_attempts": sorted(full_attempts),
            },
        )
        if is_likely and queue != INLINE_QUEUE:
            use.ask()
        rows = candidates.rows()
        fresh = [Candidate(*row) for row in rows if row[0] not in seen]
        seen.update(candidate.id for candidate in fresh)
        if queue != INLINE_QUEUE:
            use.expect(fresh)
        for candidate in fresh:
            # What runs no code takes no slot of anything, so no limit holds it back.
            if queue == INLINE_QUEUE or (len(allowed) < limit and use.take(candidate, full_pools, full_attempts)):
                allowed.append(candidate)
        if not fresh or len(rows) < asked:
            break  # that was all there is
    return allowed


class _Use:
    """How much of each limit is taken, counted from the tasks that are active now."""

    def __init__(self, tx: Transaction) -> None:
        self._tx = tx
        self._definitions = tx.shared(Definitions)
        self._answer: Reply | None = None
        self._slots: dict[str, int] | None = None
        self._used: Counter[str] = Counter()
        self._active: Counter[tuple[int | None, int | None, str | None]] = Counter()
        self._waiting: Counter[tuple[int | None, int | None, str]] = Counter()
        """Of tasks with limits of their own: how many wait for triggers."""
        self._expected: set[tuple[int, str]] = set()

    def expect(self, candidates: Sequence[Candidate]) -> None:
        """Have counted what the limits of these tasks themselves need to know; most tasks have none."""
        limited = {(one.workflow_id, one.key) for one in candidates if self._has_limit(one)} - self._expected
        if not limited:
            return
        self._expected |= limited
        self.ask()  # needed in any case, and so they travel together
        workflow_ids, keys = {one[0] for one in limited}, {one[1] for one in limited}
        answer = self._tx.ask(WAITING, {"keys": sorted(keys), "workflow_ids": sorted(workflow_ids)})
        for attempt_id, workflow_id, key, count in answer.rows():
            if (workflow_id, key) in limited:
                self._waiting[(attempt_id, None, key)] += count
                self._waiting[(None, workflow_id, key)] += count

    def take(self, candidate: Candidate, full_pools: set[str], full_attempts: set[int]) -> bool:
        """Whether every limit leaves room for it; if so it is counted."""
        if not self._pool_has_room(candidate, full_pools) or not self._run_has_room(candidate, full_attempts):
            return False
        if not self._task_has_room(candidate):
            return False
        self._used[candidate.pool] += candidate.pool_slots
        self._count(candidate.attempt_id, candidate.workflow_id, candidate.key, 1)
        return True

    def ask(self) -> Reply:
        """Have it counted, once; to be called after the candidates were asked for, which takes the claim lock."""
        if self._answer is None:
            self._answer = self._tx.ask(USE)
        return self._answer

    def _load(self) -> dict[str, int]:
        if self._slots is None:
            self._slots = {}
            for pool, slots, used, attempt_id, workflow_id, key, active in self.ask().rows():
                self._used[pool] += used or 0
                if attempt_id is None:
                    self._slots[pool] = slots
                else:
                    self._count(attempt_id, workflow_id, key, active)
        return self._slots

    def _count(self, attempt_id: int, workflow_id: int, key: str, active: int) -> None:
        self._active[(attempt_id, None, None)] += active
        self._active[(None, workflow_id, None)] += active
        self._active[(attempt_id, None, key)] += active
        self._active[(None, workflow_id, key)] += active

    def _pool_has_room(self, candidate: Candidate, full_pools: set[str]) -> bool:
        slots = self._load().get(candidate.pool, 0)  # a pool that does not exist never has room
        free = slots - self._used[candidate.pool]
        if slots < 0 or candidate.pool_slots <= free:
            return True
        if free <= 0:
            full_pools.add(candidate.pool)
        return False  # a narrower task may still fit

    def _run_has_room(self, candidate: Candidate, full_attempts: set[int]) -> bool:
        of_run = candidate.max_active_tasks_scope == "run"
        scope = (candidate.attempt_id, None, None) if of_run else (None, candidate.workflow_id, None)
        if candidate.max_active_tasks is None or self._active[scope] < candidate.max_active_tasks:
            return True
        full_attempts.add(candidate.attempt_id)
        return False

    def _task_has_room(self, candidate: Candidate) -> bool:
        """A task that waits for a trigger is not active, but still is one of those that its own limit counts."""
        node = self._node(candidate)
        if node is None:
            return True
        in_run, in_workflow = (
            self._active[scope] + self._waiting[scope]
            for scope in ((candidate.attempt_id, None, candidate.key), (None, candidate.workflow_id, candidate.key))
        )
        return (node.max_active_per_run is None or in_run < node.max_active_per_run) and (
            node.max_active_per_workflow is None or in_workflow < node.max_active_per_workflow
        )

    def _has_limit(self, candidate: Candidate) -> bool:
        node = self._node(candidate)
        return node is not None and (node.max_active_per_run is not None or node.max_active_per_workflow is not None)

    def _node(self, candidate: Candidate) -> Node | None:
        return self._definitions.version(self._tx, candidate.workflow_version_id).nodes.get(candidate.key)
