"""The deadlines that runs have ahead of them: written with the run, gone when it was done in time."""

from __future__ import annotations

from collections.abc import Collection

from headrace.definition import Deadline, Workflow
from headrace.state import RENEWED_BY_ATTEMPT, RENEWED_BY_CLEARING, Attempt, RunMoments, due_at, has_deadline, was_met
from headrace.store.database import Transaction
from headrace.store.news import News
from headrace.store.sql import Sql

MOMENTS = Sql("SELECT workflow_id, type, logical_at, interval_end, run_after FROM run WHERE id = :run_id")
AVERAGE = Sql(
    """
    SELECT count(*), CAST(avg(ended_at - started_at) AS bigint) FROM (
      SELECT started_at, ended_at FROM run
      WHERE workflow_id = :workflow_id AND logical_at IS NOT NULL AND state = 'success'
        AND started_at IS NOT NULL AND ended_at IS NOT NULL
      ORDER BY logical_at DESC LIMIT :limit
    ) AS newest
    """
)
INSERT = Sql(
    """
    INSERT INTO deadline (run_id, workflow_id, name, task, due_at, is_told, is_mailed)
    SELECT run_id, workflow_id, name, task, due_at, false, false FROM ROWS(:rows) WHERE true ON CONFLICT DO NOTHING
    """,
    rows=(
        ("run_id", "bigint"), ("workflow_id", "bigint"), ("name", "text"), ("task", "text"), ("due_at", "bigint"),
    ),
)  # fmt: skip
FORGET = Sql("DELETE FROM deadline WHERE run_id = :run_id AND missed_at IS NULL AND name IN :names[]")
LOOK = Sql("UPDATE deadline SET due_at = :now WHERE run_id = :run_id AND missed_at IS NULL AND due_at IS NULL")
DROP_MET = Sql(
    """
    DELETE FROM deadline
    WHERE run_id = :run_id AND missed_at IS NULL AND (due_at IS NULL OR due_at >= :ended_at) AND (
      name IN :names[] OR EXISTS (
        SELECT 1 FROM task
        WHERE task.attempt_id = :attempt_id AND task.key = deadline.task AND task.map_index = -1
          AND NOT task.is_superseded AND task.state IN ('success', 'skipped') AND task.ended_at <= deadline.due_at
      )
    )
    """
)
_NEVER = 2**62


def set_deadlines(tx: Transaction, run_id: int, workflow: Workflow, now: int) -> None:
    """Give a new run its deadlines."""
    _set(tx, run_id, workflow, workflow.deadlines, now)


def renew_for_attempt(tx: Transaction, run_id: int, workflow: Workflow, now: int) -> None:
    """Another pass over a run begins: what counts from its own beginning counts anew."""
    _renew(tx, run_id, workflow, RENEWED_BY_ATTEMPT, now)


def renew_for_clearing(tx: Transaction, run_id: int, workflow: Workflow, now: int) -> None:
    """Tasks of a run were cleared: what counts from when it was queued counts anew."""
    _renew(tx, run_id, workflow, RENEWED_BY_CLEARING, now)


def look_at_passed(tx: Transaction, run_id: int, workflow: Workflow, now: int) -> None:
    """A run begins: what has passed before can now have its consequences."""
    if workflow.deadlines:
        tx.write(LOOK, {"run_id": run_id, "now": now})
        tx.tell(News.PLANS)


def drop_met(tx: Transaction, attempt: Attempt, workflow: Workflow) -> None:
    """A run ended: forget those deadlines ahead of it that can be missed no more."""
    if workflow.deadlines and attempt.ended_at is not None:
        met = [one.name for one in workflow.deadlines if not one.task and was_met(one, _NEVER, attempt)]
        parameters = {"run_id": attempt.run_id, "attempt_id": attempt.id, "names": met, "ended_at": attempt.ended_at}
        tx.write(DROP_MET, parameters)


def _renew(tx: Transaction, run_id: int, workflow: Workflow, moments: Collection[str], now: int) -> None:
    renewed = [one for one in workflow.deadlines if one.counts_from in moments]
    if renewed:
        tx.write(FORGET, {"run_id": run_id, "names": [one.name for one in renewed]})
        _set(tx, run_id, workflow, renewed, now)


def _set(tx: Transaction, run_id: int, workflow: Workflow, deadlines: Collection[Deadline], now: int) -> None:
    if not deadlines:
        return
    ((workflow_id, *moments),) = tx.run(MOMENTS, {"run_id": run_id})
    run_type, logical_at, interval_end, run_after = moments
    run = RunMoments(run_type, logical_at, interval_end, run_after, queued_at=now)
    rows = []
    for one in deadlines:
        if has_deadline(one, run.type):
            at = due_at(one, run, workflow.timezone, _average(tx, workflow_id, one))
            about = {"run_id": run_id, "workflow_id": workflow_id, "name": one.name, "task": one.task}
            rows += [] if at is None else [{**about, "due_at": at}]
    if rows:
        tx.write_each(INSERT, rows)
        tx.tell(News.PLANS)  # a scheduler may have to wake up earlier


def _average(tx: Transaction, workflow_id: int, deadline: Deadline) -> int | None:
    """How long a successful run takes; None if nobody can tell yet."""
    if deadline.counts_from != "average_end":
        return None
    ((count, micros),) = tx.run(AVERAGE, {"workflow_id": workflow_id, "limit": deadline.newest_runs})
    return int(micros) if count >= max(1, deadline.fewest_runs) else None
