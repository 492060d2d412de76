"""Schedules: when each workflow is due next, and who starts it."""

from __future__ import annotations

from typing import NamedTuple

from headrace.store.database import Transaction
from headrace.store.sql import Sql

SAVE = Sql(
    """
    INSERT INTO schedule (workflow_id, spec_digest, next_logical_at, next_interval_start, next_interval_end,
                          next_run_at, last_logical_at)
    VALUES (:workflow_id, :spec_digest, :logical_at, :interval_start, :interval_end, :run_at, :last_logical_at)
    ON CONFLICT (workflow_id) DO UPDATE SET spec_digest = excluded.spec_digest,
        next_logical_at = excluded.next_logical_at, next_interval_start = excluded.next_interval_start,
        next_interval_end = excluded.next_interval_end, next_run_at = excluded.next_run_at,
        last_logical_at = excluded.last_logical_at
    """
)
DELETE = Sql("DELETE FROM schedule WHERE workflow_id = :workflow_id")
GET = Sql(
    """
    SELECT workflow_id, spec_digest, next_logical_at, next_interval_start, next_interval_end, next_run_at,
           last_logical_at
    FROM schedule WHERE workflow_id = :workflow_id
    """
)
# Locked rows are passed over, so that any number of schedulers share the work and none starts a run twice.
LOCK_DUE = Sql(
    """
    SELECT schedule.workflow_id, schedule.spec_digest, schedule.next_logical_at, schedule.next_interval_start,
           schedule.next_interval_end, schedule.next_run_at, schedule.last_logical_at
    FROM schedule JOIN workflow ON workflow.id = schedule.workflow_id
    WHERE schedule.next_run_at <= :now AND NOT workflow.is_paused
    ORDER BY schedule.next_run_at LIMIT :limit [[postgres: FOR UPDATE OF schedule SKIP LOCKED]]
    """
)
ACTIVE_RUNS = Sql("SELECT count(*) FROM run WHERE workflow_id = :workflow_id AND state IN ('queued', 'running')")


class ScheduleRow(NamedTuple):
    """A workflow's place in its timetable. Instants are microseconds since 1970."""

    workflow_id: int
    spec_digest: str
    logical_at: int | None
    interval_start: int | None
    interval_end: int | None
    run_at: int | None
    last_logical_at: int | None


def save_schedule(tx: Transaction, row: ScheduleRow) -> None:
    tx.change(SAVE, row._asdict())


def delete_schedule(tx: Transaction, workflow_id: int) -> None:
    tx.change(DELETE, {"workflow_id": workflow_id})


def get_schedule(tx: Transaction, workflow_id: int) -> ScheduleRow | None:
    rows = tx.run(GET, {"workflow_id": workflow_id})
    return ScheduleRow(*rows[0]) if rows else None


def lock_due_schedules(tx: Transaction, now: int, limit: int) -> list[ScheduleRow]:
    """Take due schedules so that no other scheduler starts their runs."""
    return [ScheduleRow(*row) for row in tx.run(LOCK_DUE, {"now": now, "limit": limit})]


def active_runs(tx: Transaction, workflow_id: int) -> int:
    """How many runs of a workflow are queued or running."""
    ((count,),) = tx.run(ACTIVE_RUNS, {"workflow_id": workflow_id})
    return int(count)
