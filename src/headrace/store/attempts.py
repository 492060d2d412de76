"""The attempts of runs, as people look at them and name them."""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec

from headrace.store.attempt_plans import plan_from_json
from headrace.store.database import Transaction
from headrace.store.sql import Sql

_ATTEMPT = """
    SELECT attempt.id, attempt.run_id, attempt.number, attempt.name, attempt.state, attempt.reason,
           attempt.is_cancel_requested, attempt.created_at, attempt.started_at, attempt.ended_at,
           attempt.workflow_version_id, archive.name, run.params, attempt.plan
    FROM attempt JOIN run ON run.id = attempt.run_id
    JOIN workflow_version ON workflow_version.id = attempt.workflow_version_id
    JOIN revision ON revision.id = workflow_version.revision_id
    LEFT JOIN archive ON archive.id = revision.archive_id
"""
OF_RUN = Sql(f"{_ATTEMPT} WHERE attempt.run_id = :run_id ORDER BY attempt.number DESC")
BY_NUMBER = Sql(f"{_ATTEMPT} WHERE attempt.run_id = :run_id AND attempt.number = :number")
RUN_AT = Sql("SELECT id FROM run WHERE workflow_id = :workflow_id AND unique_at = :logical_at")
NEWEST_SESSION = Sql(
    "SELECT unique_at FROM run WHERE workflow_id = :workflow_id AND unique_at IS NOT NULL ORDER BY id DESC LIMIT 1"
)
VERSION_IN_ARCHIVE = Sql(
    """
    SELECT max(workflow_version.id) FROM workflow_version
    JOIN revision ON revision.id = workflow_version.revision_id
    WHERE workflow_version.workflow_id = :workflow_id AND revision.archive_id = :archive_id
    """
)


class AttemptRow(NamedTuple):
    """One pass over a run."""

    id: int
    run_id: int
    number: int
    name: str
    state: str
    reason: str | None
    is_cancel_requested: bool
    created_at: int
    started_at: int | None
    ended_at: int | None
    version_id: int
    revision: str | None
    """The pushed revision that it runs, if it was pushed."""
    params: dict[str, Any]

    @property
    def label(self) -> str:
        """`12.1`: the first attempt of run 12. Every command takes it for an attempt."""
        return f"{self.run_id}.{self.number}"

    @property
    def is_active(self) -> bool:
        return self.state in ("queued", "running")


def list_attempts(tx: Transaction, run_id: int) -> list[AttemptRow]:
    """The attempts of a run, newest first."""
    return [_attempt(row) for row in tx.run(OF_RUN, {"run_id": run_id})]


def get_attempt(tx: Transaction, run_id: int, number: int) -> AttemptRow | None:
    rows = tx.run(BY_NUMBER, {"run_id": run_id, "number": number})
    return _attempt(rows[0]) if rows else None


def run_for(tx: Transaction, workflow_id: int, logical_at: int) -> int | None:
    """The id of the one run of a workflow for a logical time."""
    rows = tx.run(RUN_AT, {"workflow_id": workflow_id, "logical_at": logical_at})
    return int(rows[0][0]) if rows else None


def newest_logical_time(tx: Transaction, workflow_id: int) -> int | None:
    """The logical time of the newest run of a workflow that is the only one for its time."""
    rows = tx.run(NEWEST_SESSION, {"workflow_id": workflow_id})
    return int(rows[0][0]) if rows else None


def version_in_archive(tx: Transaction, workflow_id: int, archive_id: int) -> int | None:
    """A workflow as a pushed revision defines it. None: it does not."""
    ((version_id,),) = tx.run(VERSION_IN_ARCHIVE, {"workflow_id": workflow_id, "archive_id": archive_id})
    return None if version_id is None else int(version_id)


def _attempt(row: tuple[Any, ...]) -> AttemptRow:
    params, plan = row[-2:]
    attempt = AttemptRow._make((*row[:-2], plan_from_json(plan).params_over(msgspec.json.decode(params))))
    return attempt._replace(is_cancel_requested=bool(attempt.is_cancel_requested))
