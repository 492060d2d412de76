"""Forgetting: runs that ended long ago go with everything that belongs to them."""

from __future__ import annotations

from headrace.store.database import Transaction
from headrace.store.sql import Sql

OLD_RUNS = Sql(
    """
    SELECT id FROM run WHERE ended_at < :before AND state NOT IN ('queued', 'running')
    ORDER BY ended_at LIMIT :limit
    """
)
# The attempts first, as everybody does. With both locked, nobody can clear a task or queue the run again.
LOCK_ATTEMPTS = Sql("SELECT id FROM attempt WHERE run_id = :run_id ORDER BY id [[postgres: FOR UPDATE]]")
LOCK_RUN = Sql("SELECT state, ended_at FROM run WHERE id = :run_id [[postgres: FOR UPDATE]]")
# Down the tree, because the index over an attempt's tasks leaves out the superseded ones.
_TREE = """
    WITH RECURSIVE tree (id) AS (
      SELECT root_id FROM attempt WHERE run_id = :run_id AND root_id IS NOT NULL
      UNION ALL
      SELECT task.id FROM task JOIN tree ON task.parent_id = tree.id
    )
"""
LOGS = Sql(f"{_TREE} SELECT try.log FROM tree JOIN try ON try.task_id = tree.id WHERE try.log IS NOT NULL")
_ERRANDS = "FROM errand WHERE attempt_id IN (SELECT id FROM attempt WHERE run_id = :run_id)"
ERRAND_LOGS = Sql(f"SELECT log {_ERRANDS} AND log IS NOT NULL")
DELETE_ERRANDS = Sql(f"DELETE {_ERRANDS}")
DELETE_EDGES = Sql(f"{_TREE} DELETE FROM edge WHERE upstream_id IN (SELECT id FROM tree)")
DELETE_TRIES = Sql(f"{_TREE} DELETE FROM try WHERE task_id IN (SELECT id FROM tree)")
DELETE_VALUES = Sql(f"{_TREE} DELETE FROM value WHERE task_id IN (SELECT id FROM tree)")
DELETE_TRIGGERS = Sql(f"{_TREE} DELETE FROM trigger WHERE task_id IN (SELECT id FROM tree)")
DELETE_TASKS = Sql(f"{_TREE} DELETE FROM task WHERE id IN (SELECT id FROM tree)")
DELETE_EVENTS = Sql("DELETE FROM event WHERE attempt_id IN (SELECT id FROM attempt WHERE run_id = :run_id)")
DELETE_QUESTIONS = Sql("DELETE FROM question WHERE attempt_id IN (SELECT id FROM attempt WHERE run_id = :run_id)")
DELETE_DEADLINES = Sql("DELETE FROM deadline WHERE run_id = :run_id")
DELETE_MEMOS = Sql("DELETE FROM memo WHERE kind = 'task' AND owner_id = :run_id")
DELETE_RUN = Sql("DELETE FROM run WHERE id = :run_id")

_IN_ORDER = (
    *(DELETE_EDGES, DELETE_TRIES, DELETE_VALUES, DELETE_TRIGGERS),
    *(DELETE_EVENTS, DELETE_ERRANDS, DELETE_DEADLINES, DELETE_MEMOS, DELETE_QUESTIONS, DELETE_TASKS, DELETE_RUN),
)


def old_runs(tx: Transaction, before: int, limit: int) -> list[int]:
    """Runs that ended before an instant and have nothing going on, oldest first."""
    return [row[0] for row in tx.run(OLD_RUNS, {"before": before, "limit": limit})]


def run_logs(tx: Transaction, run_id: int) -> list[str]:
    """Paths of a run's logs, below the folder for logs."""
    return sorted({row[0] for statement in (LOGS, ERRAND_LOGS) for row in tx.run(statement, {"run_id": run_id})})


def delete_run(tx: Transaction, run_id: int, before: int) -> bool:
    """Delete a run with all its attempts, if it still is one that ended before an instant. False: it is not."""
    found = {"run_id": run_id}
    tx.run(LOCK_ATTEMPTS, found)
    rows = tx.run(LOCK_RUN, found)
    if not rows or rows[0][0] in ("queued", "running") or rows[0][1] is None or rows[0][1] >= before:
        return False
    for statement in _IN_ORDER:
        tx.change(statement, found)
    return True
