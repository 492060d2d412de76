"""What tasks show to people beside their results: rendered arguments, and names of mapped instances."""

from __future__ import annotations

from typing import Any

import msgspec

from headrace.store.database import Transaction
from headrace.store.sql import Sql

RENDERED = Sql("SELECT document FROM value WHERE task_id = :task_id AND kind = 'shown' AND name = 'rendered'")
LABELS = Sql(
    """
    SELECT value.task_id, value.document FROM task JOIN value ON value.task_id = task.id
    WHERE task.attempt_id = :attempt_id AND value.kind = 'shown' AND value.name = 'label' AND NOT task.is_superseded
    """
)


def rendered_arguments(tx: Transaction, task_id: int) -> dict[str, Any]:
    """What the arguments of a task's newest execution were rendered to; only those that had something to render."""
    rows = tx.run(RENDERED, {"task_id": task_id})
    return msgspec.json.decode(rows[0][0], type=dict[str, Any]) if rows else {}


def instance_labels(tx: Transaction, attempt_id: int) -> dict[int, str]:
    """The names that mapped instances have for people, by task id."""
    rows = tx.run(LABELS, {"attempt_id": attempt_id})
    return {task_id: msgspec.json.decode(document, type=str) for task_id, document in rows}
