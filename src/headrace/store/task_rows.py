"""Task rows in and out of the database, in sets."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import msgspec

from headrace.errors import ConflictError
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
CHANGING_COLUMNS = tuple(name for name in TASK_COLUMNS if name not in FIXED_COLUMNS and name != "version")

SELECTED = ", ".join(f"task.{name}" for name in TASK_COLUMNS)
"""Every column of a task, in the order of the fields of `Task`."""

_STATE_AT = TASK_COLUMNS.index("state")
_FEW = 64
"""Up to this many rows go in one statement as JSON; beyond it SQLite is faster with one prepared statement."""


def _typed(names: Sequence[str]) -> list[tuple[str, str]]:
    return [(name, _POSTGRES_TYPES.get(name, "text" if name in _TEXT else "bigint")) for name in names]


UPDATE_TASKS = Sql(
    f"""
    UPDATE task SET version = task.version + 1, {", ".join(f"{name} = r.{name}" for name in CHANGING_COLUMNS)}
    FROM (SELECT * FROM ROWS(:rows)) AS r
    WHERE task.id = r.id AND task.version = r.version
    """,
    rows=_typed(("id", "version", *CHANGING_COLUMNS)),
)
_UPDATE_TASK_SQLITE = (
    f"UPDATE task SET version = version + 1, {', '.join(f'{name} = ?' for name in CHANGING_COLUMNS)}"
    " WHERE id = ? AND version = ?"
)
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
_INSERT_TASK_SQLITE = (
    f"INSERT INTO task ({', '.join(TASK_COLUMNS)}, turn_at) VALUES ({', '.join('?' * len(TASK_COLUMNS))},"
    f" {_TURN.format(attempt_id='?' + str(TASK_COLUMNS.index('attempt_id') + 1))})"
)

INSERT_EDGES = Sql(
    """
    INSERT INTO edge (upstream_id, downstream_id, is_setup)
    SELECT upstream_id, downstream_id, is_setup FROM ROWS(:rows)
    """,
    rows=(("upstream_id", "bigint"), ("downstream_id", "bigint"), ("is_setup", "boolean")),
)
_INSERT_EDGE_SQLITE = "INSERT INTO edge (upstream_id, downstream_id, is_setup) VALUES (?, ?, ?)"

_EVENT_COLUMNS = Event._fields
INSERT_EVENTS = Sql(
    f"INSERT INTO event ({', '.join(_EVENT_COLUMNS)}) SELECT {', '.join(_EVENT_COLUMNS)} FROM ROWS(:rows)",
    rows=(
        ("attempt_id", "bigint"), ("task_id", "bigint"), ("before", "text"), ("after", "text"), ("actor", "text"),
        ("try_number", "integer"), ("at", "bigint"), ("reason", "text"),
    ),
)  # fmt: skip
_INSERT_EVENT_SQLITE = (
    f"INSERT INTO event ({', '.join(_EVENT_COLUMNS)}) VALUES ({', '.join('?' * len(_EVENT_COLUMNS))})"
)


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
    check = partial(_all_changed, len(tasks))
    if tx.dialect == "sqlite" and len(tasks) > _FEW:
        rows = [
            (*(getattr(task, name) for name in CHANGING_COLUMNS), task.id, task.version)
            for task in tasks
        ]  # fmt: skip
        check(tx.insert_many(_UPDATE_TASK_SQLITE, rows))
    else:
        tx.write_each(UPDATE_TASKS, tasks, check)
    for task in tasks:
        task.version += 1


def _all_changed(expected: int, changed: int) -> None:
    if changed != expected:
        raise ConflictError(f"{expected - changed} of {expected} tasks were changed by somebody else meanwhile")


def insert_tasks(tx: Transaction, tasks: Sequence[Task], edges: Sequence[Edge]) -> None:
    """Add tasks with the edges between them."""
    if tasks:
        if tx.dialect == "sqlite" and len(tasks) > _FEW:
            tx.insert_many(_INSERT_TASK_SQLITE, [msgspec.structs.astuple(task) for task in tasks])
        else:
            tx.write_each(INSERT_TASKS, tasks)
    if edges:
        if tx.dialect == "sqlite" and len(edges) > _FEW:
            tx.insert_many(_INSERT_EDGE_SQLITE, edges)
        else:
            tx.write_each(INSERT_EDGES, [edge._asdict() for edge in edges])


def insert_events(tx: Transaction, events: Sequence[Event]) -> None:
    """Record applied changes."""
    if not events:
        return
    if tx.dialect == "sqlite" and len(events) > _FEW:
        tx.insert_many(_INSERT_EVENT_SQLITE, events)
    else:
        tx.write_each(INSERT_EVENTS, [event._asdict() for event in events])
