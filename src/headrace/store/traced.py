"""An attempt that has ended, with all its tries, as a trace shows it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from headrace.handoff import TaskError
from headrace.store.database import Transaction
from headrace.store.sql import Sql

ATTEMPT = Sql(
    """
    SELECT project.name, workflow.name, run.id, run.key, run.type, run.logical_at, attempt.number, attempt.name,
           attempt.state, attempt.reason, attempt.created_at, attempt.started_at, attempt.ended_at, attempt.root_id
    FROM attempt JOIN run ON run.id = attempt.run_id JOIN workflow ON workflow.id = attempt.workflow_id
    JOIN project ON project.id = workflow.project_id
    WHERE attempt.id = :attempt_id AND attempt.started_at IS NOT NULL AND attempt.ended_at IS NOT NULL
    """
)
# Down the tree, because the index over an attempt's tasks leaves out the superseded ones.
TRIES = Sql(
    """
    WITH RECURSIVE tree (id) AS (
      SELECT CAST(:root_id AS bigint)
      UNION ALL
      SELECT task.id FROM task JOIN tree ON task.parent_id = tree.id
    )
    SELECT task.id, try.fence, task.key, task.map_index, task.operator, try.try_number, try.state, try.started_at,
           try.ended_at, try.error, agent.name
    FROM tree JOIN task ON task.id = tree.id JOIN try ON try.task_id = task.id
    LEFT JOIN agent ON agent.id = try.agent_id
    WHERE try.ended_at >= :since ORDER BY try.ended_at, try.task_id, try.fence
    """
)


class EndedTry(NamedTuple):
    """One execution of a task. Instants are microseconds since 1970."""

    task_id: int
    fence: int
    key: str
    map_index: int
    operator: str
    try_number: int
    state: str
    started_at: int | None
    ended_at: int
    error_json: str | None
    agent: str | None

    @property
    def name(self) -> str:
        return self.key if self.map_index < 0 else f"{self.key}[{self.map_index}]"

    @property
    def error(self) -> TaskError | None:
        return None if self.error_json is None else msgspec.json.decode(self.error_json, type=TaskError)


class EndedAttempt(NamedTuple):
    project: str
    workflow: str
    run_id: int
    run_key: str
    run_type: str
    logical_at: int | None
    number: int
    name: str
    state: str
    reason: str | None
    created_at: int
    started_at: int
    """Or when it was cleared, after it had ended."""
    ended_at: int
    root_id: int
    tries: Sequence[EndedTry] = ()
    """Those since it started."""


def ended_attempt(tx: Transaction, attempt_id: int) -> EndedAttempt | None:
    """An attempt with its tries. None: it never ran, or is at it again."""
    rows = tx.run(ATTEMPT, {"attempt_id": attempt_id})
    if not rows:
        return None
    attempt = EndedAttempt(*rows[0])
    tries = tx.run(TRIES, {"root_id": attempt.root_id, "since": attempt.started_at})
    return attempt._replace(tries=[EndedTry(*row) for row in tries])
