"""Misses of deadlines as people look at them."""

from __future__ import annotations

from typing import NamedTuple

from headrace.store.database import Transaction
from headrace.store.reading import PAGE
from headrace.store.sql import Sql

_MISS = """
    SELECT deadline.id, workflow.name, deadline.task, deadline.name, run.id, run.key, run.logical_at, deadline.due_at,
           deadline.missed_at, deadline.is_told, deadline.is_mailed
    FROM deadline JOIN run ON run.id = deadline.run_id JOIN workflow ON workflow.id = deadline.workflow_id
    WHERE deadline.missed_at IS NOT NULL AND deadline.id < :before
"""
_PAGE = "ORDER BY deadline.id DESC LIMIT :limit"
MISSES = Sql(f"{_MISS} {_PAGE}")
MISSES_OF_WORKFLOW = Sql(f"{_MISS} AND deadline.workflow_id = :workflow_id {_PAGE}")
_ANY_ID = 2**62


class MissRow(NamedTuple):
    """A task or a run that was not done in time. Instants are microseconds since 1970."""

    id: int
    workflow: str
    task: str
    """Empty: the whole run."""
    name: str
    """Of the deadline."""
    run_id: int
    run_key: str
    logical_at: int | None
    due_at: int
    missed_at: int
    is_told: bool
    """User code was called about it."""
    is_mailed: bool


def list_misses(
    tx: Transaction, workflow_id: int | None = None, before: int | None = None, limit: int = PAGE
) -> list[MissRow]:
    """Misses, newest first, of one workflow or of all; beginning before one."""
    parameters = {"workflow_id": workflow_id, "before": before or _ANY_ID, "limit": limit}
    rows = tx.run(MISSES if workflow_id is None else MISSES_OF_WORKFLOW, parameters)
    return [MissRow(*row) for row in rows]
