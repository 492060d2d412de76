"""The run before another one, by logical time, and the same task in earlier runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from headrace.store.database import Transaction
from headrace.store.sql import Sql

PREVIOUS = Sql(
    """
    SELECT run.id, run.key, run.type, run.state, run.logical_at, run.interval_start, run.interval_end, run.started_at,
           run.ended_at, run.run_after, run.params, run.partition_key, run.partition_at
    FROM run
    WHERE run.workflow_id = (SELECT own.workflow_id FROM run AS own WHERE own.id = :run_id)
      AND run.logical_at < (SELECT own.logical_at FROM run AS own WHERE own.id = :run_id)
      AND (:is_any = 1 OR run.state IN :states[])
    ORDER BY run.logical_at DESC LIMIT 1
    """
)
WITH_TASK = Sql(
    """
    SELECT run.key, run.logical_at, attempt.id
    FROM run AS own
    JOIN run ON run.workflow_id = own.workflow_id
         AND run.logical_at < coalesce(CAST(:before AS bigint), own.logical_at) AND run.id <> own.id
    JOIN attempt ON attempt.id = (SELECT max(newest.id) FROM attempt AS newest WHERE newest.run_id = run.id)
    JOIN task ON task.attempt_id = attempt.id AND task.key = :key AND task.map_index = :map_index
         AND NOT task.is_superseded
    WHERE own.id = :run_id AND (:is_any = 1 OR task.state IN :states[])
    ORDER BY run.logical_at DESC, run.id DESC LIMIT 1
    """
)
RESCHEDULES = Sql(
    "SELECT count(*) FROM try WHERE task_id = :task_id AND try_number = :try_number AND state = 'up_for_reschedule'"
)


class Neighbour(NamedTuple):
    """Another run of the same workflow."""

    run_id: int
    run_key: str
    run_type: str
    state: str
    logical_at: int
    interval_start: int | None
    interval_end: int | None
    started_at: int | None
    ended_at: int | None
    run_after: int
    params: str
    partition_key: str | None = None
    partition_at: int | None = None


class EarlierTask(NamedTuple):
    """Where an earlier run has a task."""

    run_key: str
    logical_at: int
    attempt_id: int


def previous_run(tx: Transaction, run_id: int, states: Sequence[str] = ()) -> Neighbour | None:
    """The run with the greatest logical time before this one's, in any state or in some; none if it has no time."""
    rows = tx.run(PREVIOUS, {"run_id": run_id, **_any_of(states)})
    return Neighbour(*rows[0]) if rows else None


def previous_attempt_with_task(
    tx: Transaction, run_id: int, key: str, map_index: int, states: Sequence[str] = (), before: int | None = None
) -> EarlierTask | None:
    """The last run before this one, or before an instant, that has the task, or has it in one of these states."""
    wish = {"run_id": run_id, "key": key, "map_index": map_index, "before": before, **_any_of(states)}
    rows = tx.run(WITH_TASK, wish)
    return EarlierTask(*rows[0]) if rows else None


def count_reschedules(tx: Transaction, task_id: int, try_number: int) -> int:
    """How often a try has asked to be called again."""
    return int(tx.run(RESCHEDULES, {"task_id": task_id, "try_number": try_number})[0][0])


def _any_of(states: Sequence[str]) -> dict[str, object]:
    return {"is_any": int(not states), "states": list(states)}
