"""What should have begun and has not, gathered so that a crowd is one row."""

from __future__ import annotations

from typing import NamedTuple

from headrace.store.backlog import MOST
from headrace.store.database import Transaction
from headrace.store.sql import Sql

LATE_SCHEDULES = Sql(
    """
    SELECT project.name, workflow.name, schedule.next_run_at
    FROM schedule JOIN workflow ON workflow.id = schedule.workflow_id JOIN project ON project.id = workflow.project_id
    WHERE schedule.next_run_at <= :before ORDER BY schedule.next_run_at LIMIT :limit
    """
)
LATE_TIMETABLES = Sql(
    """
    SELECT project.name, workflow.name, schedule.slots_wanted_at
    FROM schedule JOIN workflow ON workflow.id = schedule.workflow_id JOIN project ON project.id = workflow.project_id
    WHERE schedule.slots_wanted_at <= :before AND NOT workflow.is_gone
    ORDER BY schedule.slots_wanted_at LIMIT :limit
    """
)
LATE_RUNS = Sql(
    """
    SELECT min(late.id), count(*), min(late.run_after)
    FROM (SELECT id, workflow_id, run_after FROM run WHERE state = 'queued' AND id > 0 AND run_after <= :before
          ORDER BY run_after LIMIT :most) AS late
    GROUP BY late.workflow_id ORDER BY min(late.run_after) LIMIT :limit
    """
)
READY_TASKS = Sql(
    """
    SELECT ready.attempt_id, min(ready.id), count(*), min(ready.scheduled_at)
    FROM (SELECT id, attempt_id, pool, pool_slots, queue, scheduled_at FROM task WHERE state = 'scheduled'
          LIMIT :most) AS ready
    GROUP BY ready.attempt_id, ready.pool, ready.pool_slots, ready.queue ORDER BY min(ready.scheduled_at) LIMIT :limit
    """
)
RETRIES = Sql(
    """
    SELECT count(*), min(later.due_at)
    FROM (SELECT due_at FROM task WHERE due_at > :now AND state = 'up_for_retry' ORDER BY due_at LIMIT :most) AS later
    """
)
RUNS_OF_ATTEMPTS = Sql("SELECT id, run_id FROM attempt WHERE id IN :ids[]")


class LateSchedule(NamedTuple):
    project: str
    workflow: str
    due_at: int


class LateRuns(NamedTuple):
    """Queued runs of one workflow whose time has come."""

    run_id: int
    """One of them."""
    number: int
    since: int


class Retries(NamedTuple):
    """Tasks whose next try has its time."""

    number: int
    first_at: int | None


class ReadyTasks(NamedTuple):
    """Tasks of one run, pool and queue, of which each needs as many slots, that could run."""

    run_id: int
    task_id: int
    """One of them."""
    number: int
    since: int


def late_schedules(tx: Transaction, before: int, limit: int) -> list[LateSchedule]:
    """Schedules that were due before an instant and that nobody has served, oldest first."""
    return [LateSchedule(*row) for row in tx.run(LATE_SCHEDULES, {"before": before, "limit": limit})]


def late_timetables(tx: Transaction, before: int, limit: int) -> list[LateSchedule]:
    """Schedules whose next time only user code can tell, which nobody has asked since before an instant."""
    return [LateSchedule(*row) for row in tx.run(LATE_TIMETABLES, {"before": before, "limit": limit})]


def late_runs(tx: Transaction, before: int, limit: int) -> list[LateRuns]:
    """Runs that might have started before an instant and did not, by workflow."""
    rows = tx.run(LATE_RUNS, {"before": before, "limit": limit, "most": MOST})
    return [LateRuns(*row) for row in rows]


def retries(tx: Transaction, now: int) -> Retries:
    """Tasks that wait for the time of their next try."""
    ((number, first_at),) = tx.run(RETRIES, {"now": now, "most": MOST})
    return Retries(number, first_at)


def ready_tasks(tx: Transaction, limit: int) -> list[ReadyTasks]:
    """Tasks that no agent has taken, in groups that wait for the same."""
    rows = tx.run(READY_TASKS, {"limit": limit, "most": MOST})
    runs = {row[0]: row[1] for row in tx.run(RUNS_OF_ATTEMPTS, {"ids": sorted({row[0] for row in rows})})}
    return [ReadyTasks(runs[row[0]], *row[1:]) for row in rows]
