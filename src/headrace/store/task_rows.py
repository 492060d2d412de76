"""Task rows in and out of the database, in sets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from headrace.state import Edge, Event, State, Task
from headrace.store.database import Transaction
from headrace.store.sql import Sql

_STATES = {str(state): state for state in State}
_POSTGRES_TYPES = {
    "priority": "integer", "pool_slots": "integer", "decides": "boolean", "is_failing": "boolean",
    "is_superseded": "boolean", "timeout_seconds": "double precision",
}  # fmt: skip
_TEXT = {
    "key", "kind", "isolation", "operator", "trigger_rule", "body", "pool", "queue", "state", "error", "decision",
    "poll_state", "resume",
}  # fmt: skip

TASK_COLUMNS = tuple(field.name for field in msgspec.structs.fields(Task))
FIXED_COLUMNS = TASK_COLUMNS[: TASK_COLUMNS.index("state")]
_CHANGING_OTHERWISE = ("version", "is_superseded")
CHANGING_COLUMNS = tuple(name for name in TASK_COLUMNS if name not in (*FIXED_COLUMNS, *_CHANGING_OTHERWISE))

SELECTED = ", ".join(f"task.{name}" for name in TASK_COLUMNS)
"""Every column of a task, in the order of the fields of `Task`."""

_STATE_AT = TASK_COLUMNS.index("state")


def _typed(names: Sequence[str]) -> list[tuple[str, str]]:
    return [(name, _POSTGRES_TYPES.get(name, "text" if name in _TEXT else "bigint")) for name in names]


UPDATE_TASKS = Sql(
    f"""
    UPDATE task SET version = task.version + 1, {", ".join(f"{name} = r.{name}" for name in CHANGING_COLUMNS)}
    FROM (SELECT * FROM ROWS(:rows)) AS r
    WHERE task.id = r.id AND task.version = r.version
    """,
    rows=_typed(("id", "version", *CHANGING_COLUMNS)),
    changes_all=True,
)
# Apart, because it is rare, and SQLite writes an index anew for each column that a statement names.
SUPERSEDE = Sql("UPDATE task SET is_superseded = :yes WHERE id IN :ids[] AND NOT is_superseded")
# Only claims look at it, so that nobody else carries it around: among equals the run of the earliest time goes first.
_TURN = (
    "(SELECT coalesce(run.logical_at, run.run_after) FROM attempt JOIN run ON run.id = attempt.run_id"
    " WHERE attempt.id = {attempt_id})"
)
INSERT_TASKS = Sql(
    f"""
    INSERT INTO task ({", ".join(TASK_COLUMNS)}, turn_at)
    SELECT {", ".join(TASK_COLUMNS)}, {_TURN.format(attempt_id="r.attempt_id")} FROM (SELECT * FROM ROWS(:rows)) AS r
    """,
    rows=_typed(TASK_COLUMNS),
)

INSERT_EDGES = Sql(
    """
    INSERT INTO edge (upstream_id, downstream_id, is_setup)
    SELECT upstream_id, downstream_id, is_setup FROM ROWS(:rows)
    """,
    rows=(("upstream_id", "bigint"), ("downstream_id", "bigint"), ("is_setup", "boolean")),
)

_EVENT_COLUMNS = Event._fields
INSERT_EVENTS = Sql(
    f"INSERT INTO event ({', '.join(_EVENT_COLUMNS)}) SELECT {', '.join(_EVENT_COLUMNS)} FROM ROWS(:rows)",
    rows=(
        ("attempt_id", "bigint"), ("task_id", "bigint"), ("before", "text"), ("after", "text"), ("actor", "text"),
        ("try_number", "integer"), ("at", "bigint"), ("reason", "text"),
    ),
)  # fmt: skip


def to_task(row: Sequence[Any]) -> Task:
    """A task out of a row that was selected as SELECTED."""
    task = Task(*row)
    task.state = _STATES[row[_STATE_AT]]
    return task


def update_tasks(tx: Transaction, tasks: Sequence[Task]) -> None:
    """Write changed tasks, each only over the version that it was read as.

    If one lost, there is a ConflictError, at the latest when the transaction ends.
    """
    if not tasks:
        return
    superseded = [task.id for task in tasks if task.is_superseded]
    if superseded:  # before others may take their places
        tx.write(SUPERSEDE, {"yes": True, "ids": superseded})
    tx.write_each(UPDATE_TASKS, tasks)
    for task in tasks:
        task.version += 1


def insert_tasks(tx: Transaction, tasks: Sequence[Task], edges: Sequence[Edge]) -> None:
    """Add tasks with the edges between them."""
    if tasks:
        tx.write_each(INSERT_TASKS, tasks)
    if edges:
        tx.write_each(INSERT_EDGES, edges)


def insert_events(tx: Transaction, events: Sequence[Event]) -> None:
    """Record applied changes."""
    if events:
        tx.write_each(INSERT_EVENTS, events)
