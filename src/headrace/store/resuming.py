"""A new attempt may carry over what an earlier attempt of the run finished."""

from __future__ import annotations

from collections.abc import Sequence

from headrace.state import State, Task
from headrace.store.database import Transaction
from headrace.store.sql import Sql

RESUMES = Sql("SELECT resumes_attempt_id FROM attempt WHERE id = :id")
SUCCEEDED = Sql(
    """
    SELECT key, id, started_at, ended_at, try_number FROM task
    WHERE attempt_id = :attempt_id AND state = 'success' AND parent_id IS NOT NULL AND grown_by IS NULL
      AND kind = 'task' AND map_index = -1 AND NOT is_superseded
    """
)
COPY_VALUES = Sql(
    """
    INSERT INTO value (task_id, name, attempt_id, kind, document, length)
    SELECT r.new_id, value.name, r.attempt_id, value.kind, value.document, value.length
    FROM value JOIN (SELECT * FROM ROWS(:rows)) AS r ON r.old_id = value.task_id
    """,
    rows=(("old_id", "bigint"), ("new_id", "bigint"), ("attempt_id", "bigint")),
)
MARK_STORES = Sql(
    """
    UPDATE attempt SET has_stores = :yes
    WHERE id = :id AND EXISTS (SELECT 1 FROM value WHERE attempt_id = :id AND kind IN ('export', 'store'))
    """
)


def resume_tasks(tx: Transaction, attempt_id: int, tasks: Sequence[Task]) -> list[Task]:
    """Mark new tasks as done that had succeeded in the attempt which this one resumes, with their results.

    Tasks are matched by their keys. Groups close by themselves; mapped tasks are mapped anew.
    """
    ((resumes,),) = tx.run(RESUMES, {"id": attempt_id})
    if resumes is None:
        return []
    done = {row[0]: row for row in tx.run(SUCCEEDED, {"attempt_id": resumes})}
    resumed, copies = [], []
    for task in tasks:
        if task.key in done and task.kind == "task":
            _, old_id, task.started_at, task.ended_at, task.try_number = done[task.key]
            task.state = State.SUCCESS
            resumed.append(task)
            copies.append({"old_id": old_id, "new_id": task.id, "attempt_id": attempt_id})
    if copies:
        tx.write_each(COPY_VALUES, copies)
        tx.change(MARK_STORES, {"id": attempt_id, "yes": True})
    return resumed
