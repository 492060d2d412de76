"""Forgetting: runs that ended long ago go with everything that belongs to them, in small transactions.

First the run itself goes, so that nobody can begin anything with it any more, and its attempts are noted as leftovers.
What they leave behind is swept up piece by piece, leaves of the tree first: whoever dies in between, the next one
finds the rest below the same roots.
"""

from __future__ import annotations

from headrace.store.database import Transaction
from headrace.store.sql import Sql

PIECE = 1000
"""How many tasks, or events, one transaction deletes at most."""

OLD_RUNS = Sql(
    """
    SELECT id FROM run WHERE ended_at < :before AND state NOT IN ('queued', 'running')
    ORDER BY ended_at LIMIT :limit
    """
)
# The attempts first, as everybody does. With both locked, nobody can clear a task or queue the run again.
LOCK_ATTEMPTS = Sql("SELECT id FROM attempt WHERE run_id = :run_id ORDER BY id [[postgres: FOR UPDATE]]")
LOCK_RUN = Sql("SELECT state, ended_at FROM run WHERE id = :run_id [[postgres: FOR UPDATE]]")
# Down the tree, because the index over an attempt's tasks leaves out the superseded ones. PostgreSQL takes a tree for
# large and, where few tries have a log, would look through all of them first: it must be given the tasks as a list.
LOGS = Sql(
    """
    WITH RECURSIVE tree (id) AS (
      SELECT root_id FROM attempt WHERE run_id = :run_id AND root_id IS NOT NULL
      UNION ALL
      SELECT task.id FROM task JOIN tree ON task.parent_id = tree.id
    )
    SELECT log FROM try WHERE log IS NOT NULL
      AND task_id [[sqlite: IN (SELECT id FROM tree)]][[postgres: = ANY (ARRAY(SELECT id FROM tree))]]
    """
)
_ERRANDS = "FROM errand WHERE attempt_id IN (SELECT id FROM attempt WHERE run_id = :run_id)"
ERRAND_LOGS = Sql(f"SELECT log {_ERRANDS} AND log IS NOT NULL")
DELETE_ERRANDS = Sql(f"DELETE {_ERRANDS}")
DELETE_DEADLINES = Sql("DELETE FROM deadline WHERE run_id = :run_id")
DELETE_QUESTIONS = Sql("DELETE FROM question WHERE attempt_id IN (SELECT id FROM attempt WHERE run_id = :run_id)")
DELETE_MEMOS = Sql("DELETE FROM memo WHERE kind = 'task' AND owner_id = :run_id")
LEAVE_BEHIND = Sql("INSERT INTO leftover (attempt_id, root_id) SELECT id, root_id FROM attempt WHERE run_id = :run_id")
DELETE_RUN = Sql("DELETE FROM run WHERE id = :run_id")

TAKE_LEFTOVER = Sql(
    "SELECT attempt_id, root_id FROM leftover ORDER BY attempt_id LIMIT 1 [[postgres: FOR UPDATE SKIP LOCKED]]"
)
ROOT = Sql("SELECT id FROM task WHERE id = :root_id")
CHILDREN = Sql("SELECT id FROM task WHERE parent_id IN :ids[] LIMIT :limit")
DELETE_EDGES = Sql("DELETE FROM edge WHERE upstream_id IN :ids[]")
DELETE_TRIES = Sql("DELETE FROM try WHERE task_id IN :ids[]")
DELETE_VALUES = Sql("DELETE FROM value WHERE task_id IN :ids[]")
DELETE_TRIGGERS = Sql("DELETE FROM trigger WHERE task_id IN :ids[]")
DELETE_TASKS = Sql("DELETE FROM task WHERE id IN :ids[]")
DELETE_EVENTS = Sql(
    """
    DELETE FROM event WHERE id IN (
      SELECT id FROM event WHERE attempt_id = :attempt_id ORDER BY attempt_id, id LIMIT :limit
    )
    """
)
DELETE_LEFTOVER = Sql("DELETE FROM leftover WHERE attempt_id = :attempt_id")


def old_runs(tx: Transaction, before: int, limit: int) -> list[int]:
    """Runs that ended before an instant and have nothing going on, oldest first."""
    return [row[0] for row in tx.run(OLD_RUNS, {"before": before, "limit": limit})]


def run_logs(tx: Transaction, run_id: int) -> list[str]:
    """Paths of a run's logs, below the folder for logs."""
    return sorted({row[0] for statement in (LOGS, ERRAND_LOGS) for row in tx.run(statement, {"run_id": run_id})})


def delete_run(tx: Transaction, run_id: int, before: int, limit: int = PIECE) -> bool:
    """Delete a run with all its attempts, if it still is one that ended before an instant. False: it is not.

    What is left of one with more than `limit` tasks is for `sweep_leftovers`.
    """
    found = {"run_id": run_id}
    tx.run(LOCK_ATTEMPTS, found)
    rows = tx.run(LOCK_RUN, found)
    if not rows or rows[0][0] in ("queued", "running") or rows[0][1] is None or rows[0][1] >= before:
        return False
    for statement in (DELETE_ERRANDS, DELETE_DEADLINES, DELETE_QUESTIONS, DELETE_MEMOS, LEAVE_BEHIND, DELETE_RUN):
        tx.write(statement, found)
    sweep_leftovers(tx, limit)
    return True


def sweep_leftovers(tx: Transaction, limit: int = PIECE) -> bool:
    """Delete a piece of what deleted runs have left behind. False: there is nothing left, or others are at it."""
    left = limit
    while left > 0:
        rows = tx.run(TAKE_LEFTOVER)
        if not rows:
            return left < limit
        attempt_id, root_id = rows[0]
        left -= _sweep(tx, attempt_id, root_id, left)
    return True


def _sweep(tx: Transaction, attempt_id: int, root_id: int | None, limit: int) -> int:
    """Returns how much was done."""
    leaves = _leaves(tx, root_id, limit)
    if leaves:
        for statement in (DELETE_EDGES, DELETE_TRIES, DELETE_VALUES, DELETE_TRIGGERS, DELETE_TASKS):
            tx.write(statement, {"ids": leaves})
        return len(leaves)
    deleted = tx.change(DELETE_EVENTS, {"attempt_id": attempt_id, "limit": limit})
    if deleted == 0:
        tx.write(DELETE_LEFTOVER, {"attempt_id": attempt_id})
    return deleted + 1


def _leaves(tx: Transaction, root_id: int | None, limit: int) -> list[int]:
    """Some tasks of a tree that have no tasks below them."""
    leaves: list[int] = []
    level = [row[0] for row in tx.run(ROOT, {"root_id": root_id})] if root_id is not None else []
    while level:
        leaves = level
        level = [row[0] for row in tx.run(CHILDREN, {"ids": level, "limit": limit})]
    return leaves
