"""Clearing goes on into other workflows where a task has left word that another one depends on it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime

import msgspec

from headrace.clock import to_micros
from headrace.errors import NotFoundError, StateError
from headrace.handoff import MARKED_TASK
from headrace.store import (
    RunRow,
    TaskRow,
    Transaction,
    clear_tasks,
    list_edges,
    list_tasks,
    runs_by_time,
    task_values,
    workflow_for,
)

WithDownstream = Callable[[Sequence[TaskRow], Sequence[TaskRow], Iterable[tuple[int, int]]], list[TaskRow]]


class _Mark(msgspec.Struct):
    workflow: str
    task: str
    logical_time: datetime
    depth: int


def clear_marked(
    tx: Transaction, run: RunRow, cleared: Sequence[TaskRow], now: int, with_downstream: WithDownstream
) -> None:
    """Clear what cleared tasks mark in other workflows, with everything after it, and what that marks in turn."""
    seen = {task.id for task in cleared}
    level = [(run, cleared)]
    depth, limit = 0, 0
    while level:
        marks = [(one, mark) for one, tasks in level for mark in _marks(tx, one, tasks)]
        limit = limit or min((mark.depth for _, mark in marks), default=0)
        if marks and depth >= limit:
            raise StateError(f"cannot clear run {run.id}: its markers lead through more than {limit} workflows")
        level = []
        for one, mark in marks:
            other, tasks = _found(tx, one, mark)
            fresh = [task for task in tasks if task.id not in seen]
            if other is not None and fresh:
                chosen = with_downstream(fresh, list_tasks(tx, other.attempt_id), list_edges(tx, other.attempt_id))
                clear_tasks(tx, other.attempt_id, [task.id for task in chosen], now)
                seen.update(task.id for task in chosen)
                level.append((other, chosen))
        depth += 1


def _marks(tx: Transaction, run: RunRow, tasks: Sequence[TaskRow]) -> list[_Mark]:
    values = task_values(tx, run.attempt_id, sorted({task.key for task in tasks}), MARKED_TASK)
    documents = [document for value in values.values() for document in value.documents]
    return [msgspec.json.decode(document, type=_Mark) for document in documents]


def _found(tx: Transaction, run: RunRow, mark: _Mark) -> tuple[RunRow | None, list[TaskRow]]:
    """The marked task, if its run is there and has begun."""
    try:
        row = workflow_for(tx, mark.workflow, None, run.project)
    except NotFoundError:
        return None, []
    runs = runs_by_time(tx, row.id, [to_micros(mark.logical_time)])
    if not runs:
        return None, []
    return runs[0], [
        task for task in list_tasks(tx, runs[0].attempt_id) if task.key == mark.task and task.map_index < 0
    ]
