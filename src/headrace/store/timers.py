"""What time owns: due retries and polls, overdue tries and runs, queued runs whose time has come."""

from __future__ import annotations

from typing import NamedTuple

from headrace.handoff import TaskError
from headrace.state import HELD, TIMED, Actor, Advance, Task
from headrace.store.active_runs import IS_QUEUED, IS_RUNNING
from headrace.store.backfills import WAITING_BACKFILLS
from headrace.store.database import Transaction
from headrace.store.results import Committed, fail_tasks, settle_and_flush, tell_of
from headrace.store.run_graph import RunGraph
from headrace.store.sql import Sql

IS_TASK_DUE = Sql("SELECT 1 FROM task WHERE due_at <= :now LIMIT 1")
DUE_TASKS = Sql("SELECT id, attempt_id FROM task WHERE due_at <= :now ORDER BY due_at LIMIT :limit")
# A run that has timed out is alerting people; it is not timed out again for that.
# One look for both, because most looks find neither. No attempt has the id 0. The first deadline is asked for, and not
# whether there is any: for that PostgreSQL may take an index over all of them that is in another order.
OVERDUE = Sql(
    """
    SELECT id FROM (
      SELECT id FROM attempt
      WHERE timeout_at IS NOT NULL AND state = 'running' AND timeout_at <= :now AND coalesce(reason, '') <> 'timed_out'
      ORDER BY timeout_at LIMIT :limit
    ) AS overdue
    UNION ALL SELECT 0 WHERE (SELECT min(due_at) FROM deadline WHERE missed_at IS NULL) <= :now
    """
)
OLD_ATTEMPTS = Sql(
    """
    SELECT id FROM attempt WHERE state = 'running' AND started_at <= :before AND coalesce(reason, '') <> 'timed_out'
    ORDER BY id LIMIT :limit
    """
)
# Both parts read what is active or timed, which has an index; what is finished is not looked at.
ATTEMPTS_WITH_OLD_TASKS = Sql(
    """
    SELECT DISTINCT attempt_id FROM (
      SELECT attempt_id, first_started_at FROM task WHERE state IN ('queued', 'running', 'restarting')
      UNION ALL SELECT attempt_id, first_started_at FROM task WHERE due_at IS NOT NULL
    ) AS open_task
    WHERE first_started_at <= :before ORDER BY attempt_id LIMIT :limit
    """
)
# Queued runs that are due wait for a limit, not for a time.
_NEXT_DUE = """
    SELECT min(at) FROM (
      SELECT (SELECT min(due_at) FROM task WHERE due_at IS NOT NULL) AS at
      UNION ALL SELECT (SELECT min(next_run_at) FROM schedule WHERE next_run_at IS NOT NULL)
      UNION ALL SELECT (SELECT min(timeout_at) FROM attempt WHERE timeout_at IS NOT NULL AND state = 'running'
                        AND coalesce(reason, '') <> 'timed_out')
      UNION ALL SELECT (SELECT min(due_at) FROM deadline WHERE missed_at IS NULL)
      UNION ALL SELECT (SELECT min(run_after) FROM run WHERE state = 'queued' AND id > 0 AND run_after > :now)
    ) AS timers
    """
NEXT_DUE = Sql(_NEXT_DUE)
# The limit is the one of the queued run which would be started first; runs of a backfill have one of their own.
_HAS_ROOM = f"""
    first.max_active_runs IS NULL OR first.max_active_runs > (
      SELECT count(*) FROM run
      WHERE run.workflow_id = workflow.id AND {IS_RUNNING}
        AND coalesce(run.backfill_id, 0) = first.backfill_id
    )
    """
# From workflow to workflow, and of each only the first run of those that wait, also of each backfill: there may be
# thousands behind it. For PostgreSQL the order is spelled so that no index over all runs has it, and SQLite is told to
# begin with those workflows: some of its versions would rather look at all that there are, in the order of their ids.
_WAITING_WORKFLOWS = f"""
    WITH RECURSIVE busy (workflow_id) AS (
      SELECT CAST(0 AS bigint)
      UNION ALL
      SELECT (
        SELECT run.workflow_id FROM run WHERE run.workflow_id > busy.workflow_id AND {IS_QUEUED}
        ORDER BY run.workflow_id[[postgres: , run.state, coalesce(run.backfill_id, 0)]] LIMIT 1
      )
      FROM busy WHERE busy.workflow_id IS NOT NULL
    )
    SELECT workflow.id FROM busy [[sqlite: CROSS]] JOIN workflow ON workflow.id = busy.workflow_id
    WHERE NOT workflow.is_paused AND (
      EXISTS (
        SELECT 1 FROM (
          SELECT attempt.max_active_runs, 0 AS backfill_id
          FROM run JOIN attempt ON attempt.run_id = run.id AND attempt.state = 'queued'
          WHERE run.workflow_id = workflow.id AND {IS_QUEUED} AND coalesce(run.backfill_id, 0) = 0
            AND coalesce(run.backfill_order, 0) = 0 AND run.run_after <= :now
          ORDER BY run.run_after, run.id LIMIT 1
        ) AS first WHERE {_HAS_ROOM}
      )
      OR EXISTS (
        SELECT 1 FROM ({WAITING_BACKFILLS.format(workflow_id="workflow.id")}) AS lane WHERE EXISTS (
          SELECT 1 FROM (
            SELECT attempt.max_active_runs, coalesce(run.backfill_id, 0) AS backfill_id
            FROM run JOIN attempt ON attempt.run_id = run.id AND attempt.state = 'queued'
            WHERE run.workflow_id = workflow.id AND {IS_QUEUED}
              AND coalesce(run.backfill_id, 0) BETWEEN lane.id AND lane.id AND run.run_after <= :now
            ORDER BY coalesce(run.backfill_id, 0), coalesce(run.backfill_order, 0) LIMIT 1
          ) AS first WHERE {_HAS_ROOM}
        )
      )
    )
    ORDER BY workflow.id LIMIT :limit
    """
WAITING_WORKFLOWS = Sql(_WAITING_WORKFLOWS)
OUTLOOK = Sql(f"SELECT ({_NEXT_DUE}), EXISTS (SELECT 1 FROM nudge), EXISTS ({_WAITING_WORKFLOWS})")
# Found through the indexes of what is active, so that neither long runs nor finished ones are read.
QUIET = Sql(
    """
    SELECT attempt.id FROM attempt
    WHERE attempt.state = 'running' AND attempt.root_id IS NOT NULL AND attempt.id > :after
      AND attempt.id NOT IN (
        SELECT attempt_id FROM task WHERE state = 'scheduled'
        UNION ALL SELECT attempt_id FROM task WHERE state IN ('queued', 'running', 'restarting')
        UNION ALL SELECT attempt_id FROM task WHERE due_at IS NOT NULL
      )
    ORDER BY attempt.id LIMIT :limit
    """
)
MOVABLE = Sql(
    """
    SELECT 1 FROM task WHERE attempt_id = :attempt_id AND NOT is_superseded AND state IN (
      'scheduled', 'queued', 'running', 'restarting', 'deferred', 'up_for_retry', 'up_for_reschedule'
    ) LIMIT 1
    """
)
# What waits for an earlier run is about to be looked at.
NUDGED = Sql(
    """
    SELECT 1 FROM nudge
    WHERE (SELECT attempt.workflow_id FROM attempt WHERE attempt.id = nudge.attempt_id) = :id LIMIT 1
    """
)


class Outlook(NamedTuple):
    """What there is for a scheduler to do, in one look: most of them find nothing."""

    next_at: int | None
    """When the next timer of any kind is due, or was due."""
    has_nudges: bool
    """Whether somebody may wait for something that has happened in an earlier run."""
    has_startable_runs: bool
    """Whether queued runs may start now."""


class Overdue(NamedTuple):
    """What is to be looked at because a time has passed."""

    attempts: list[int]
    """Those that took longer than their workflow allows."""
    has_deadlines: bool
    """Whether deadlines have passed."""


class Woken(NamedTuple):
    """What became of due tasks."""

    found: int
    """How many were due."""
    moved: int
    """How many were moved here; somebody else was first with the others."""
    ended_attempts: list[int]


def has_due_tasks(tx: Transaction, now: int) -> bool:
    """Whether waking is worth while."""
    return bool(tx.run(IS_TASK_DUE, {"now": now}))


def wake_due_tasks(tx: Transaction, now: int, limit: int = 500) -> Woken:
    """Schedule what waited for this moment, and end tries that are over their time limit."""
    rows = tx.run(DUE_TASKS, {"now": now, "limit": limit})
    if not rows:
        return Woken(0, 0, [])
    graph = RunGraph(tx, now)
    attempts = {attempt_id for _, attempt_id in rows}
    loaded = graph.load_with_parents([task_id for task_id, _ in rows], locking=attempts)
    due = [task for task in loaded if task.due_at is not None and task.due_at <= now]
    held = [task for task in due if task.state in HELD]
    advance = Advance(graph)
    for task in due:
        if task.state in TIMED:
            advance.wake(task)
    outcomes = [settle_and_flush(advance, graph)]
    outcomes += [
        fail_tasks(tx, graph, [task], _took_too_long(task), Actor.TIMER) for task in held if task.state in HELD
    ]
    graph.flush_events()
    tell_of(tx, graph, outcomes)
    return Woken(len(rows), len(due), [attempt_id for outcome in outcomes for attempt_id in outcome.ended_attempts])


def _took_too_long(task: Task) -> TaskError:
    limit = "its time limit" if task.timeout_seconds is None else f"{task.timeout_seconds:g} s"
    return TaskError(type="TaskTimeout", message=f"took longer than {limit}")


def find_overdue(tx: Transaction, now: int, limit: int = 100) -> Overdue:
    """What has taken too long, or was to be done by now."""
    found = [row[0] for row in tx.run(OVERDUE, {"now": now, "limit": limit})]
    return Overdue([attempt_id for attempt_id in found if attempt_id], has_deadlines=0 in found)


def old_attempts(tx: Transaction, before: int, limit: int = 100) -> list[int]:
    """Attempts that have been running since before a moment."""
    return [row[0] for row in tx.run(OLD_ATTEMPTS, {"before": before, "limit": limit})]


def attempts_with_old_tasks(tx: Transaction, before: int, limit: int = 100) -> list[int]:
    """Attempts with a task that began before a moment and has not come to its end, with all its waits and tries."""
    return [row[0] for row in tx.run(ATTEMPTS_WITH_OLD_TASKS, {"before": before, "limit": limit})]


def look_ahead(tx: Transaction, now: int) -> Outlook:
    ((next_at, has_nudges, has_startable_runs),) = tx.run(OUTLOOK, {"now": now, "limit": 1})
    return Outlook(None if next_at is None else int(next_at), bool(has_nudges), bool(has_startable_runs))


def next_due(tx: Transaction, now: int) -> int | None:
    """When the next timer of any kind is due, or was due."""
    ((at,),) = tx.run(NEXT_DUE, {"now": now})
    return None if at is None else int(at)


def waiting_workflows(tx: Transaction, now: int, limit: int = 1000) -> list[int]:
    """Workflows with queued runs whose time has come and for which their limit has room."""
    return [row[0] for row in tx.run(WAITING_WORKFLOWS, {"now": now, "limit": limit})]


def stalled_attempts(tx: Transaction, after: int = 0, limit: int = 100) -> list[int]:
    """Running attempts in which nothing can move any more by itself."""
    stalled: list[int] = []
    while len(stalled) < limit:
        quiet = [row[0] for row in tx.run(QUIET, {"after": after, "limit": limit})]
        # Some wait without a due time for something from outside.
        stalled += [attempt_id for attempt_id in quiet if not _is_movable(tx, attempt_id)]
        if len(quiet) < limit:
            break
        after = quiet[-1]
    return stalled[:limit]


def _is_movable(tx: Transaction, attempt_id: int) -> bool:
    return bool(tx.run(MOVABLE, {"attempt_id": attempt_id}))


def revive_attempt(tx: Transaction, attempt_id: int, now: int) -> Committed | None:
    """Finish what a dying process left half-advanced; if nothing can move at all, the run has a deadlock and fails."""
    graph = RunGraph(tx, now)
    graph.lock([attempt_id])
    attempt = graph.attempt(attempt_id)
    if attempt.state != "running" or _is_movable(tx, attempt_id) or tx.run(NUDGED, {"id": attempt.workflow_id}):
        return None
    advance = Advance(graph)
    advance.reconsider(attempt)
    advance.settle()
    if graph.is_held_up and not advance.scheduled and not advance.ended and not graph.has_changes:
        return None  # an earlier run holds it up, and will let it go
    if not advance.scheduled and not advance.ended and not graph.has_changes:
        advance.fail_deadlocked(attempt)
    committed = settle_and_flush(advance, graph)
    tell_of(tx, graph, [committed])
    return committed
