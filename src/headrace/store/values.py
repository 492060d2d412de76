"""Named results of tasks: what user code may ask for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from headrace.handoff import RETURN_VALUE
from headrace.store.database import Reply, Transaction
from headrace.store.sql import Sql

TASK_VALUES = Sql(
    """
    SELECT task.key, task.map_index, task.kind, value.document
    FROM task LEFT JOIN value ON value.task_id = task.id AND value.kind = 'result' AND value.name = :name
    WHERE task.attempt_id = :attempt_id AND task.key IN :keys[] AND NOT task.is_superseded
    ORDER BY task.key, task.map_index
    """
)
ALL_VALUES = Sql(
    """
    SELECT task.key, task.map_index, task.kind, value.name, value.document
    FROM task LEFT JOIN value ON value.task_id = task.id AND value.kind = 'result'
      AND (CAST(:name AS text) IS NULL OR value.name = :name)
    WHERE task.attempt_id = :attempt_id AND task.key IN :keys[] AND NOT task.is_superseded
    ORDER BY task.key, task.map_index, value.name
    """
)
NEWEST_WITH_VALUE = Sql(
    """
    SELECT attempt.id
    FROM workflow JOIN run ON run.workflow_id = workflow.id JOIN attempt ON attempt.run_id = run.id
    JOIN task ON task.attempt_id = attempt.id AND task.key = :key AND NOT task.is_superseded
    JOIN value ON value.task_id = task.id AND value.kind = 'result' AND value.name = :name
    WHERE workflow.name = :workflow AND coalesce(run.logical_at, run.run_after) <= :until
    ORDER BY coalesce(run.logical_at, run.run_after) DESC, run.id DESC, attempt.number DESC LIMIT 1
    """
)
RUN_TIME = Sql("SELECT coalesce(logical_at, run_after) FROM run WHERE id = :run_id")
DELETE_VALUE = Sql(
    "DELETE FROM value WHERE task_id = :task_id AND kind = 'result' AND (CAST(:name AS text) IS NULL OR name = :name)"
)
RESULT_OF = Sql(
    """
    SELECT task.id, task.fence, task.kind FROM task
    WHERE attempt_id = :attempt_id AND key = :key AND map_index = -1 AND NOT is_superseded
    """
)
DOCUMENT = Sql("SELECT document FROM value WHERE task_id = :task_id AND kind = 'result' AND name = :name")
RESULT_LENGTH = Sql("SELECT length FROM value WHERE task_id = :task_id AND kind = 'result' AND name = :name")
INSTANCE_COUNT = Sql(
    """
    SELECT count(*) FROM task JOIN value ON value.task_id = task.id AND value.kind = 'result'
    WHERE task.parent_id = :task_id AND value.name = :name AND NOT task.is_superseded
    """
)
INSTANCE_DOCUMENT = Sql(
    """
    SELECT value.document FROM task JOIN value ON value.task_id = task.id AND value.kind = 'result'
    WHERE task.parent_id = :parent_id AND value.name = :name AND NOT task.is_superseded
    ORDER BY task.map_index LIMIT 1 OFFSET :number
    """
)
SET_VALUE = Sql(
    """
    INSERT INTO value (task_id, name, attempt_id, kind, document, length)
    VALUES (:task_id, :name, :attempt_id, 'result', :document, :length)
    ON CONFLICT (task_id, kind, name) DO UPDATE SET document = excluded.document, length = excluded.length
    """
)
ATTEMPT_OF = Sql(
    """
    SELECT max(attempt.id)
    FROM attempt JOIN run ON run.id = attempt.run_id JOIN workflow ON workflow.id = run.workflow_id
    WHERE workflow.name = :workflow AND run.key = :run_key
    """
)


class TaskValues:
    """The values of one task under one name: a single one, or one per instance."""

    def __init__(self) -> None:
        self.is_mapped = False
        self.by_index: dict[int, str] = {}

    @property
    def documents(self) -> list[str]:
        """The JSON documents in the order of the instances."""
        return [self.by_index[index] for index in sorted(self.by_index)]


def task_values(tx: Transaction, attempt_id: int, keys: Sequence[str], name: str) -> dict[str, TaskValues]:
    """Results by task key, for the tasks that exist."""
    found: dict[str, TaskValues] = {}
    parameters = {"attempt_id": attempt_id, "keys": list(keys), "name": name}
    for key, map_index, kind, document in tx.run(TASK_VALUES, parameters):
        values = found.setdefault(key, TaskValues())
        values.is_mapped = values.is_mapped or kind == "mapped"
        if document is not None:
            values.by_index[map_index] = document
    return found


class NamedValue(NamedTuple):
    """One named result of one task or instance; `document` is None where a task has none of that name."""

    task: str
    map_index: int
    kind: str
    name: str | None
    document: str | None


def named_values(tx: Transaction, attempt_id: int, keys: Sequence[str], name: str | None) -> list[NamedValue]:
    """Every result of these tasks of one name, or of any; a task without results is there once."""
    parameters = {"attempt_id": attempt_id, "keys": list(keys), "name": name}
    return [NamedValue(*row) for row in tx.run(ALL_VALUES, parameters)]


def newest_attempt_with_value(tx: Transaction, workflow: str, key: str, name: str, run_id: int) -> int | None:
    """The attempt of the newest run, up to the time of this one, in which a task has a result of this name."""
    times = tx.run(RUN_TIME, {"run_id": run_id})
    if not times:
        return None
    rows = tx.run(NEWEST_WITH_VALUE, {"workflow": workflow, "key": key, "name": name, "until": times[0][0]})
    return int(rows[0][0]) if rows else None


def delete_values(tx: Transaction, task_id: int, name: str | None) -> int:
    """Forget a named result of a task, or all of them; how many there were."""
    return tx.change(DELETE_VALUE, {"task_id": task_id, "name": name})


def ask_for_result(tx: Transaction, attempt_id: int, key: str) -> Reply:
    """Ask for what `result_of` tells."""
    return tx.ask(RESULT_OF, {"attempt_id": attempt_id, "key": key})


def result_of(tx: Transaction, attempt_id: int, key: str, asked: Reply | None = None) -> tuple[int, int, bool] | None:
    """(task id, fence, is mapped) of a task. The fence changes whenever its result may have changed.

    `asked`: the question, if this transaction has asked it before.
    """
    rows = (asked or ask_for_result(tx, attempt_id, key)).rows()
    return (rows[0][0], rows[0][1], rows[0][2] == "mapped") if rows else None


def get_document(tx: Transaction, task_id: int, name: str) -> str | None:
    """One named result, as JSON."""
    rows = tx.run(DOCUMENT, {"task_id": task_id, "name": name})
    return rows[0][0] if rows else None


def result_length(tx: Transaction, attempt_id: int, key: str) -> int | None:
    """How many elements there are to map over: of the result, or of the instances' results."""
    found = result_of(tx, attempt_id, key)
    if found is None:
        return None
    task_id, _, is_mapped = found
    statement = INSTANCE_COUNT if is_mapped else RESULT_LENGTH
    rows = tx.run(statement, {"task_id": task_id, "name": RETURN_VALUE})
    return rows[0][0] if rows else None


def instance_document(tx: Transaction, mapped_id: int, name: str, number: int) -> str | None:
    """The result of the n-th instance of a mapped task that has one."""
    rows = tx.run(INSTANCE_DOCUMENT, {"parent_id": mapped_id, "name": name, "number": number})
    return rows[0][0] if rows else None


def set_value(tx: Transaction, task_id: int, attempt_id: int, name: str, document: str, length: int | None) -> None:
    """Store a named result at once, before the try has ended."""
    parameters = {"task_id": task_id, "attempt_id": attempt_id, "name": name, "document": document, "length": length}
    tx.change(SET_VALUE, parameters)


def attempt_of_run(tx: Transaction, workflow: str, run_key: str) -> int | None:
    """The newest attempt of a run, by names."""
    ((attempt_id,),) = tx.run(ATTEMPT_OF, {"workflow": workflow, "run_key": run_key})
    return None if attempt_id is None else int(attempt_id)
