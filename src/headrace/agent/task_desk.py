"""Answers tasks that ask for other tasks: those of their run, and the same task in earlier runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

from headrace.clock import from_micros, iso, to_micros
from headrace.errors import NotFoundError
from headrace.handoff import TaskRequest
from headrace.store import (
    Store,
    TaskRow,
    attempt_of_run,
    count_reschedules,
    list_tasks,
    previous_attempt_with_task,
)


class TaskDesk:
    """The verbs about tasks. Each is called with the asking task's request and the question's arguments."""

    def __init__(self, store: Store) -> None:
        self._store = store

    @property
    def verbs(self) -> dict[str, Callable[..., Any]]:
        return {
            "get_tasks": self._get_tasks,
            "get_previous_task": self._get_previous_task,
            "count_reschedules": self._count_reschedules,
        }

    def _get_tasks(
        self, request: TaskRequest, run_key: str | None = None, workflow: str | None = None
    ) -> list[dict[str, Any]]:
        run = request.run
        with self._store.read() as tx:
            attempt_id: int | None = run.attempt_id
            if run_key is not None or workflow is not None:
                attempt_id = attempt_of_run(tx, workflow or run.workflow, run_key or run.run_key)
            rows = [] if attempt_id is None else list_tasks(tx, attempt_id)
        return [_told(row) for row in rows if row.is_listed]

    def _get_previous_task(
        self,
        request: TaskRequest,
        task: str | None = None,
        map_index: int | None = None,
        states: Sequence[str] = (),
        before: str | None = None,
    ) -> dict[str, Any]:
        key = task or request.key
        index = request.map_index if map_index is None else map_index
        limit = None if before is None else to_micros(_aware(before))
        with self._store.read() as tx:
            found = previous_attempt_with_task(tx, request.run.run_id, key, index, states, limit)
            if found is None:
                raise NotFoundError(f"no earlier run has a task `{key}` like that")
            row = next(one for one in list_tasks(tx, found.attempt_id) if (one.key, one.map_index) == (key, index))
        return {**_told(row), "run_key": found.run_key, "logical_time": iso(from_micros(found.logical_at))}

    def _count_reschedules(self, request: TaskRequest) -> int:
        with self._store.read() as tx:
            return count_reschedules(tx, request.task_id, request.try_number)


def _told(row: TaskRow) -> dict[str, Any]:
    """A task in words that cross a process boundary; instants are ISO 8601."""
    return {
        "task": row.key,
        "map_index": row.map_index,
        "state": row.state,
        "try_number": row.try_number,
        "max_tries": row.max_tries,
        "operator": row.operator,
        "pool": row.pool,
        "queue": row.queue,
        "started_at": _text(row.started_at),
        "ended_at": _text(row.ended_at),
    }


def _text(micros: int | None) -> str | None:
    return None if micros is None else iso(from_micros(micros))


def _aware(text: str) -> datetime:
    moment = datetime.fromisoformat(text)
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
