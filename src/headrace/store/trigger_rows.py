"""Rows of triggers: there from when a task begins to wait until it waits no longer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from headrace.definition import Deferral
from headrace.state import Actor, Event, State, Task
from headrace.store.database import Transaction
from headrace.store.news import News
from headrace.store.sql import Sql

INSERT = Sql(
    """
    INSERT INTO trigger (id, task_id, attempt_id, path, arguments, priority, is_given_up, created_at)
    SELECT id, task_id, attempt_id, path, arguments, priority, is_given_up, created_at FROM ROWS(:rows)
    """,
    rows=(
        ("id", "bigint"), ("task_id", "bigint"), ("attempt_id", "bigint"), ("path", "text"),
        ("arguments", "text"), ("priority", "integer"), ("is_given_up", "boolean"), ("created_at", "bigint"),
    ),
)  # fmt: skip
DELETE = Sql("DELETE FROM trigger WHERE task_id IN :ids[] AND NOT is_given_up")
GIVE_UP = Sql("UPDATE trigger SET is_given_up = :yes WHERE task_id IN :ids[] AND NOT is_given_up")


def insert_triggers(tx: Transaction, deferred: Sequence[tuple[Task, Deferral]], ids: Sequence[int], now: int) -> None:
    """Have triggerers run what these tasks wait for."""
    if deferred:
        rows = [_row(id_, task, deferral, now) for id_, (task, deferral) in zip(ids, deferred, strict=True)]
        tx.write_each(INSERT, rows)
        tx.tell(News.TRIGGERS)


def release_triggers(tx: Transaction, events: Sequence[Event]) -> None:
    """These tasks wait no longer. A wait that was given up still has its trigger told to end its work outside."""
    ended = [event.task_id for event in events if _has_ended(event)]
    given_up = [event.task_id for event in events if not _has_ended(event)]
    if ended:
        tx.write(DELETE, {"ids": ended})
    if given_up:
        tx.write(GIVE_UP, {"ids": given_up, "yes": True})
    if any(event.actor != Actor.TRIGGERER for event in events):
        tx.tell(News.TRIGGERS)


def _has_ended(event: Event) -> bool:
    """Whether the trigger was done, or the task goes on and knows what to do about its work."""
    return event.after == State.SCHEDULED or event.actor == Actor.TRIGGERER


def _row(trigger_id: int, task: Task, deferral: Deferral, now: int) -> dict[str, Any]:
    return {
        "id": trigger_id,
        "task_id": task.id,
        "attempt_id": task.attempt_id,
        "path": deferral.trigger,
        "arguments": msgspec.json.encode(deferral.arguments).decode(),
        "priority": task.priority,
        "is_given_up": False,
        "created_at": now,
    }
