"""Errands as people look at them."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from headrace.handoff import TaskError
from headrace.store.database import Transaction
from headrace.store.reading import PAGE
from headrace.store.sql import Sql

_ERRAND = """
    SELECT errand.id, attempt.run_id, workflow.name, task.key, task.map_index, errand.try_number, errand.kind,
           errand.payload, errand.queue, errand.state, errand.tries, agent.name, errand.due_at, errand.created_at,
           errand.started_at, errand.ended_at, errand.error, errand.log
    FROM errand JOIN attempt ON attempt.id = errand.attempt_id JOIN workflow ON workflow.id = attempt.workflow_id
    LEFT JOIN task ON task.id = errand.task_id LEFT JOIN agent ON agent.id = errand.agent_id
"""
ERRANDS = Sql(f"{_ERRAND} WHERE errand.id < :before ORDER BY errand.id DESC LIMIT :limit")
ERRANDS_OF_RUN = Sql(
    f"""{_ERRAND} WHERE errand.attempt_id IN (SELECT id FROM attempt WHERE run_id = :run_id) AND errand.id < :before
        ORDER BY errand.id DESC LIMIT :limit"""
)
_ANY_ID = 2**62


class ErrandRow(NamedTuple):
    """An errand with what it is about."""

    id: int
    run_id: int
    workflow: str
    key: str | None
    map_index: int | None
    try_number: int
    kind: str
    payload: str
    queue: str
    state: str
    tries: int
    agent: str | None
    due_at: int | None
    created_at: int
    started_at: int | None
    ended_at: int | None
    error_json: str | None
    log: str | None
    """Path below the logs folder."""

    @property
    def task(self) -> str | None:
        """The name of the task that it is about, or that explains a run's end."""
        return self.key if self.map_index is None or self.map_index < 0 else f"{self.key}[{self.map_index}]"

    @property
    def error(self) -> TaskError | None:
        return None if self.error_json is None else msgspec.json.decode(self.error_json, type=TaskError)


def list_errands(
    tx: Transaction, run_id: int | None = None, before: int | None = None, limit: int = PAGE
) -> list[ErrandRow]:
    """Errands, newest first, of one run or of all; beginning before one."""
    parameters = {"run_id": run_id, "before": before or _ANY_ID, "limit": limit}
    rows = tx.run(ERRANDS if run_id is None else ERRANDS_OF_RUN, parameters)
    return [ErrandRow(*row) for row in rows]
