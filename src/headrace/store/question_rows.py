"""Rows of questions: open from when a task begins to wait for a person until it waits no longer, and then history."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from headrace.definition import Deferral, Question
from headrace.state import Actor, Event, State, Task
from headrace.store.database import Transaction
from headrace.store.sql import Sql

INSERT = Sql(
    """
    INSERT INTO question (task_id, attempt_id, document, asked_at, due_at)
    SELECT task_id, attempt_id, document, asked_at, due_at FROM ROWS(:rows)
    """,
    rows=(
        ("task_id", "bigint"), ("attempt_id", "bigint"), ("document", "text"), ("asked_at", "bigint"),
        ("due_at", "bigint"),
    ),
)  # fmt: skip
CLOSE = Sql("UPDATE question SET closed_at = :now, outcome = :outcome WHERE task_id IN :ids[] AND closed_at IS NULL")


def insert_questions(tx: Transaction, deferred: Sequence[tuple[Task, Deferral]], now: int) -> None:
    """Ask people what these tasks wait to know."""
    rows = [_row(task, deferral.question, now) for task, deferral in deferred if deferral.question is not None]
    if rows:
        tx.write_each(INSERT, rows)


def close_questions(tx: Transaction, events: Sequence[Event], now: int) -> None:
    """These tasks wait no longer; what was answered is closed already."""
    late = [event.task_id for event in events if _is_late(event)]
    others = [event.task_id for event in events if not _is_late(event)]
    for ids, outcome in ((late, "timed_out"), (others, "withdrawn")):
        if ids:
            tx.write(CLOSE, {"ids": ids, "outcome": outcome, "now": now})


def _is_late(event: Event) -> bool:
    return event.actor == Actor.TIMER and event.after == State.SCHEDULED


def _row(task: Task, question: Question, now: int) -> dict[str, Any]:
    return {
        "task_id": task.id,
        "attempt_id": task.attempt_id,
        "document": msgspec.json.encode(question).decode(),
        "asked_at": now,
        "due_at": task.due_at,
    }
