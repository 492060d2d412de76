"""What time owns: due retries and polls, overdue tries and runs, queued runs whose time has come."""

from __future__ import annotations

from headrace.state import TIMED, Advance, State
from headrace.store.database import Transaction
from headrace.store.results import Committed, settle_and_flush
from headrace.store.run_graph import RunGraph
from headrace.store.sql import Sql

DUE_TASKS = Sql("SELECT id, attempt_id FROM task WHERE due_at <= :now ORDER BY due_at, id LIMIT :limit")
OVERDUE_ATTEMPTS = Sql(
    "SELECT id FROM attempt WHERE timeout_at IS NOT NULL AND state = 'running' AND timeout_at <= :now LIMIT :limit"
)
NEXT_DUE = Sql(
    """
    SELECT min(at) FROM (
      SELECT (SELECT min(due_at) FROM task WHERE due_at IS NOT NULL) AS at
      UNION ALL SELECT (SELECT min(next_run_at) FROM schedule WHERE next_run_at IS NOT NULL)
      UNION ALL SELECT (SELECT min(timeout_at) FROM attempt WHERE timeout_at IS NOT NULL AND state = 'running')
      UNION ALL SELECT (SELECT min(run_after) FROM run WHERE state = 'queued' AND run_after > :now)
    ) AS timers
    """
)
WAITING_WORKFLOWS = Sql(
    """
    SELECT DISTINCT workflow_id FROM run JOIN workflow ON workflow.id = run.workflow_id
    WHERE run.state = 'queued' AND run.run_after <= :now AND NOT workflow.is_paused LIMIT :limit
    """
)
STALLED = Sql(
    """
    SELECT attempt.id FROM attempt
    WHERE attempt.state = 'running' AND attempt.root_id IS NOT NULL AND attempt.id > :after
      AND NOT EXISTS (
        SELECT 1 FROM task WHERE task.attempt_id = attempt.id AND NOT task.is_superseded
        AND task.state IN (
          'scheduled', 'queued', 'running', 'restarting', 'deferred', 'up_for_retry', 'up_for_reschedule'
        )
      )
    ORDER BY attempt.id LIMIT :limit
    """
)


def wake_due_tasks(tx: Transaction, now: int, limit: int = 500) -> Committed | None:
    """Schedule what waited for this moment, and end tries that are over their time limit."""
    rows = tx.run(DUE_TASKS, {"now": now, "limit": limit})
    if not rows:
        return None
    graph = RunGraph(tx, now)
    graph.lock(attempt_id for _, attempt_id in rows)
    advance = Advance(graph)
    for task in graph.load_with_parents([task_id for task_id, _ in rows]):
        if task.due_at is None or task.due_at > now:
            continue  # somebody else was first
        if task.state in TIMED:
            advance.wake(task)
        elif task.state is State.RUNNING:
            advance.expire(task)
    committed = settle_and_flush(advance, graph)
    tx.should_notify = tx.should_notify or committed.scheduled + committed.scheduled_inline > 0
    return committed


def overdue_attempts(tx: Transaction, now: int, limit: int = 100) -> list[int]:
    """Attempts that took longer than their workflow allows."""
    return [row[0] for row in tx.run(OVERDUE_ATTEMPTS, {"now": now, "limit": limit})]


def next_due(tx: Transaction, now: int) -> int | None:
    """When the next timer of any kind is due."""
    ((at,),) = tx.run(NEXT_DUE, {"now": now})
    return None if at is None else int(at)


def waiting_workflows(tx: Transaction, now: int, limit: int = 1000) -> list[int]:
    """Workflows with queued runs whose time has come."""
    return [row[0] for row in tx.run(WAITING_WORKFLOWS, {"now": now, "limit": limit})]


def stalled_attempts(tx: Transaction, after: int = 0, limit: int = 100) -> list[int]:
    """Running attempts in which nothing can move any more by itself."""
    return [row[0] for row in tx.run(STALLED, {"after": after, "limit": limit})]


def revive_attempt(tx: Transaction, attempt_id: int, now: int) -> Committed | None:
    """Finish what a dying process left half-advanced; if nothing can move at all, the run has a deadlock and fails."""
    graph = RunGraph(tx, now)
    graph.lock([attempt_id])
    attempt = graph.attempt(attempt_id)
    if attempt.state != "running" or attempt_id not in stalled_attempts(tx, after=attempt_id - 1, limit=1):
        return None
    advance = Advance(graph)
    advance.reconsider(attempt)
    advance.settle()
    if not advance.scheduled and not advance.ended and not graph.has_changes:
        advance.fail_deadlocked(attempt)
    return settle_and_flush(advance, graph)
