"""The tasks that an agent could take: those in the database, and those that its own transaction has scheduled."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any, NamedTuple

from headrace.state import INLINE_QUEUE, State, Task
from headrace.store.database import Reply, Transaction
from headrace.store.run_graph import RunGraph
from headrace.store.sql import Sql
from headrace.store.task_rows import SELECTED, to_task

_CANDIDATES = """
    SELECT task.turn_at, attempt.workflow_id, attempt.workflow_version_id, attempt.max_active_tasks,
           attempt.max_active_tasks_scope, attempt.has_stores, {selected}
    FROM task
    JOIN attempt ON attempt.id = task.attempt_id
    JOIN workflow ON workflow.id = attempt.workflow_id
    [[postgres: CROSS JOIN (SELECT pg_advisory_xact_lock(7236)) AS claim_lock]]
    WHERE task.state = 'scheduled' AND {scope}
      AND NOT (task.pool IN :full_pools[]) AND NOT (task.attempt_id IN :full_attempts[])
    ORDER BY task.priority DESC, task.turn_at, task.id LIMIT :limit [[postgres: FOR UPDATE OF task SKIP LOCKED]]
    """
CANDIDATES = Sql(_CANDIDATES.format(selected=SELECTED, scope="task.queue = :queue AND NOT workflow.is_paused"))
CANDIDATES_OF_ATTEMPTS = Sql(
    _CANDIDATES.format(
        selected=SELECTED,
        scope="task.attempt_id IN :attempt_ids[] AND (task.queue = 'inline') = (:queue = 'inline')",
    )
)


class Candidate(NamedTuple):
    """A scheduled task, with what its limits and its turn depend on."""

    turn_at: int
    workflow_id: int
    workflow_version_id: int
    max_active_tasks: int | None
    max_active_tasks_scope: str
    has_stores: bool
    task: Task

    @property
    def order(self) -> tuple[int, int, int]:
        """Whose turn is first, as the database orders them."""
        return -self.task.priority, self.turn_at, self.task.id


class Page:
    """The next so many candidates of the database, which may still be on their way."""

    def __init__(self, graph: RunGraph, asked: int, reply: Reply) -> None:
        self._graph = graph
        self._asked = asked
        self._reply = reply

    @property
    def is_last(self) -> bool:
        """Whether there are no others behind these."""
        return len(self._reply.rows()) < self._asked

    def candidates(self) -> list[Candidate]:
        return [_candidate(self._graph, row) for row in self._reply.rows()]


class Candidates:
    """Of one queue; with `attempt_ids` of these attempts, whatever queue they name and even if a workflow is paused."""

    def __init__(self, tx: Transaction, graph: RunGraph, queue: str, attempt_ids: Collection[int] | None) -> None:
        self._tx = tx
        self._graph = graph
        self._queue = queue
        self._attempt_ids = attempt_ids

    def ask(self, limit: int, full_pools: Collection[str] = (), full_attempts: Collection[int] = ()) -> Page:
        """Ask the database. From then on nobody else claims until the transaction ends."""
        parameters = {
            "queue": self._queue,
            "attempt_ids": sorted(self._attempt_ids or ()),
            "limit": limit,
            "full_pools": sorted(full_pools),
            "full_attempts": sorted(full_attempts),
        }
        statement = CANDIDATES if self._attempt_ids is None else CANDIDATES_OF_ATTEMPTS
        return Page(self._graph, limit, self._tx.ask(statement, parameters))

    def unwritten(self) -> Iterator[Candidate]:
        """Those that this transaction has scheduled itself, whether the database knows it yet or not."""
        for task in self._graph.scheduled():
            terms = self._graph.terms(task.attempt_id)
            if terms is not None and self._is_wanted(task, terms.is_paused):
                attempt = self._graph.attempt(task.attempt_id)
                yield Candidate(
                    terms.turn_at,
                    attempt.workflow_id,
                    attempt.workflow_version_id,
                    terms.max_active_tasks,
                    terms.max_active_tasks_scope,
                    terms.has_stores,
                    task,
                )

    def _is_wanted(self, task: Task, is_paused: bool) -> bool:
        if self._attempt_ids is None:
            return task.queue == self._queue and not is_paused
        return task.attempt_id in self._attempt_ids and (task.queue == INLINE_QUEUE) == (self._queue == INLINE_QUEUE)


def _candidate(graph: RunGraph, row: tuple[Any, ...]) -> Candidate:
    """The transaction may have decided otherwise about the task since the database was asked."""
    width = len(Candidate._fields) - 1
    return Candidate._make((*row[:width], graph.known(to_task(row[width:]))))


def is_open(candidate: Candidate) -> bool:
    """Whether it can still be taken."""
    return candidate.task.state is State.SCHEDULED
