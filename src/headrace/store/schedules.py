"""Schedules: when each workflow is due next, and who starts it.

`next_run_at` is when a scheduler looks at the schedule again; what is due then follows from `next_logical_at`. A paused
workflow's schedule has no such time, so that ten thousand of them cost nothing; letting it go on gives it one again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from headrace.store.database import Transaction
from headrace.store.sql import Sql

_COLUMNS = """
    schedule.workflow_id, schedule.spec_digest, schedule.next_logical_at, schedule.next_interval_start,
    schedule.next_interval_end, schedule.next_run_at, schedule.last_logical_at, schedule.disabled_at,
    schedule.last_interval_start, schedule.last_interval_end, schedule.slots_wanted_at
"""
SAVE = Sql(
    """
    INSERT INTO schedule (workflow_id, spec_digest, next_logical_at, next_interval_start, next_interval_end,
                          next_run_at, last_logical_at, last_interval_start, last_interval_end, slots_wanted_at)
    VALUES (:workflow_id, :spec_digest, :logical_at, :interval_start, :interval_end, :run_at, :last_logical_at,
            :last_interval_start, :last_interval_end, :slots_wanted_at)
    ON CONFLICT (workflow_id) DO UPDATE SET spec_digest = excluded.spec_digest,
        next_logical_at = excluded.next_logical_at, next_interval_start = excluded.next_interval_start,
        next_interval_end = excluded.next_interval_end,
        next_run_at = CASE WHEN schedule.disabled_at IS NULL THEN excluded.next_run_at END,
        last_logical_at = excluded.last_logical_at, last_interval_start = excluded.last_interval_start,
        last_interval_end = excluded.last_interval_end, slots_wanted_at = excluded.slots_wanted_at
    """
)
MOVE = Sql(
    """
    UPDATE schedule SET next_logical_at = r.logical_at, next_interval_start = r.interval_start,
        next_interval_end = r.interval_end, next_run_at = r.run_at, last_logical_at = r.last_logical_at,
        last_interval_start = r.last_interval_start, last_interval_end = r.last_interval_end,
        slots_wanted_at = r.slots_wanted_at
    FROM (SELECT * FROM ROWS(:rows)) AS r WHERE schedule.workflow_id = r.workflow_id
    """,
    rows=(
        ("workflow_id", "bigint"), ("logical_at", "bigint"), ("interval_start", "bigint"), ("interval_end", "bigint"),
        ("run_at", "bigint"), ("last_logical_at", "bigint"), ("last_interval_start", "bigint"),
        ("last_interval_end", "bigint"), ("slots_wanted_at", "bigint"),
    ),
)  # fmt: skip
DELETE = Sql("DELETE FROM schedule WHERE workflow_id = :workflow_id")
GET = Sql(f"SELECT {_COLUMNS} FROM schedule WHERE workflow_id = :workflow_id")
IS_DUE = Sql("SELECT 1 FROM schedule WHERE next_run_at <= :now LIMIT 1")
WANTED = Sql(
    f"""
    SELECT {_COLUMNS} FROM schedule WHERE slots_wanted_at <= :now ORDER BY slots_wanted_at LIMIT :limit
    """
)
# Locked rows are passed over, so that any number of schedulers share the work and none starts a run twice.
LOCK_DUE = Sql(
    f"""
    SELECT {_COLUMNS} FROM schedule WHERE next_run_at <= :now
    ORDER BY next_run_at LIMIT :limit [[postgres: FOR UPDATE SKIP LOCKED]]
    """
)
# Whoever changes a schedule locks it before its workflow, as those do who start runs.
LOCK_OF_FILE = Sql(
    f"""
    SELECT {_COLUMNS} FROM schedule JOIN workflow ON workflow.id = schedule.workflow_id
    WHERE workflow.project_id = :project_id AND workflow.file = :file
    ORDER BY schedule.workflow_id [[postgres: FOR UPDATE OF schedule]]
    """
)
LOCK_OF_PROJECT = Sql(
    f"""
    SELECT {_COLUMNS} FROM schedule JOIN workflow ON workflow.id = schedule.workflow_id
    WHERE workflow.project_id = :project_id
    ORDER BY schedule.workflow_id [[postgres: FOR UPDATE OF schedule]]
    """
)
LISTED = Sql(
    """
    SELECT schedule.workflow_id, project.name, workflow.name, workflow.current_version_id, schedule.next_logical_at,
           schedule.next_run_at, schedule.last_logical_at, schedule.disabled_at, workflow.is_paused
    FROM schedule JOIN workflow ON workflow.id = schedule.workflow_id JOIN project ON project.id = workflow.project_id
    WHERE schedule.workflow_id > :after ORDER BY schedule.workflow_id LIMIT :limit
    """
)
LOCK_ONE = Sql(f"SELECT {_COLUMNS} FROM schedule WHERE workflow_id = :workflow_id [[postgres: FOR UPDATE]]")
DISABLE = Sql("UPDATE schedule SET disabled_at = :now, next_run_at = NULL WHERE workflow_id = :workflow_id")
# Never later than its next run is due: what is due then follows from the logical time. A schedule whose times only user
# code can tell is asked for again, one that waits for events is looked at once.
ENABLE = Sql(
    """
    UPDATE schedule SET disabled_at = NULL,
        next_run_at = CASE WHEN slots_wanted_at IS NULL THEN coalesce(next_logical_at, 0) END,
        slots_wanted_at = CASE WHEN slots_wanted_at IS NOT NULL THEN 0 END
    WHERE workflow_id = :workflow_id
    """
)
OCCUPATION = Sql(
    """
    SELECT workflow.id, workflow.current_version_id, workflow.is_paused, count(run.id),
           coalesce(sum(CASE WHEN attempt.is_cancel_requested THEN 1 ELSE 0 END), 0), count(run.backfill_id)
    FROM workflow
    LEFT JOIN run ON run.workflow_id = workflow.id AND run.state IN ('queued', 'running')
    LEFT JOIN attempt ON attempt.run_id = run.id AND attempt.state IN ('queued', 'running')
    WHERE workflow.id IN :ids[]
    GROUP BY workflow.id, workflow.current_version_id, workflow.is_paused
    """
)


PARKED = 2**62
"""The instant at which user code is asked about a schedule whose next time it has told already."""


class ScheduleRow(NamedTuple):
    """A workflow's place in its timetable. Instants are microseconds since 1970."""

    workflow_id: int
    spec_digest: str
    logical_at: int | None
    interval_start: int | None
    interval_end: int | None
    run_at: int | None
    """When a scheduler looks at it: when the next run is due, or later if it was held back. None: never."""
    last_logical_at: int | None
    disabled_at: int | None = None
    """Since when it starts nothing; saving and moving it leave this as it is."""
    last_interval_start: int | None = None
    last_interval_end: int | None = None
    slots_wanted_at: int | None = None
    """Of a schedule whose times only user code can tell: when it is to be asked. PARKED: it has told the next one."""


class ListedSchedule(NamedTuple):
    """A schedule as lists show it; its id is that of its workflow."""

    id: int
    project: str
    workflow: str
    version_id: int
    logical_at: int | None
    run_at: int | None
    last_logical_at: int | None
    disabled_at: int | None
    is_paused: bool


class Occupation(NamedTuple):
    """What a workflow is doing."""

    version_id: int
    is_paused: bool
    active_runs: int
    """Queued or running."""
    stopping_runs: int
    """Those of them that were asked to stop."""
    backfill_runs: int = 0
    """Those of them that obey a backfill's limit, not the workflow's."""


def save_schedule(tx: Transaction, row: ScheduleRow) -> None:
    tx.change(SAVE, row._asdict())


def move_schedules(tx: Transaction, rows: Sequence[ScheduleRow]) -> None:
    """Give schedules that the caller has locked their new places."""
    if rows:
        tx.write_each(MOVE, rows)


def delete_schedule(tx: Transaction, workflow_id: int) -> None:
    tx.change(DELETE, {"workflow_id": workflow_id})


def get_schedule(tx: Transaction, workflow_id: int) -> ScheduleRow | None:
    rows = tx.run(GET, {"workflow_id": workflow_id})
    return ScheduleRow(*rows[0]) if rows else None


def has_due_schedules(tx: Transaction, now: int) -> bool:
    """Whether locking is worth while."""
    return bool(tx.run(IS_DUE, {"now": now}))


def lock_due_schedules(tx: Transaction, now: int, limit: int) -> list[ScheduleRow]:
    """Take due schedules so that no other scheduler starts their runs. Those of paused workflows are among them."""
    return [ScheduleRow(*row) for row in tx.run(LOCK_DUE, {"now": now, "limit": limit})]


def lock_schedules_of_file(tx: Transaction, project_id: int, file: str) -> dict[int, ScheduleRow]:
    """Take the schedules of a file's workflows, by workflow, so that nobody starts runs while the file is saved."""
    rows = tx.run(LOCK_OF_FILE, {"project_id": project_id, "file": file})
    return {row[0]: ScheduleRow(*row) for row in rows}


def list_schedules(tx: Transaction, after: int = 0, limit: int = 10_000) -> list[ListedSchedule]:
    """Schedules by id, beginning after one."""
    return [ListedSchedule(*row) for row in tx.run(LISTED, {"after": after, "limit": limit})]


def lock_schedules_of_project(tx: Transaction, project_id: int) -> dict[int, ScheduleRow]:
    """Take all schedules of a project, by workflow."""
    return {row[0]: ScheduleRow(*row) for row in tx.run(LOCK_OF_PROJECT, {"project_id": project_id})}


def lock_schedule(tx: Transaction, workflow_id: int) -> ScheduleRow | None:
    """Take the schedule of a workflow, if it has one."""
    rows = tx.run(LOCK_ONE, {"workflow_id": workflow_id})
    return ScheduleRow(*rows[0]) if rows else None


def disable_schedule(tx: Transaction, workflow_id: int, now: int) -> None:
    """Let a schedule that the caller has locked start nothing, until it is enabled again."""
    tx.change(DISABLE, {"workflow_id": workflow_id, "now": now})


def enable_schedule(tx: Transaction, workflow_id: int) -> None:
    """Let a schedule that the caller has locked go on; what was missed follows from its own settings."""
    tx.change(ENABLE, {"workflow_id": workflow_id})
    tx.tell()


def occupations(tx: Transaction, workflow_ids: Sequence[int]) -> dict[int, Occupation]:
    """What workflows are doing. Asked once their schedules are locked, it misses nothing that others have started."""
    rows = tx.run(OCCUPATION, {"ids": list(workflow_ids)})
    return {row[0]: Occupation(row[1], bool(row[2]), *row[3:]) for row in rows}


def wanted_slots(tx: Transaction, now: int, limit: int = 100) -> list[ScheduleRow]:
    """Schedules about which user code is to be asked."""
    return [ScheduleRow(*row) for row in tx.run(WANTED, {"now": now, "limit": limit})]
