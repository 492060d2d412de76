"""New runs, and further attempts of runs: queued, until somebody starts them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from headrace.definition import Workflow, storable
from headrace.errors import NotFoundError, StateError
from headrace.store.attempt_plans import ORDINARY, AttemptPlan, plan_to_json
from headrace.store.database import Transaction
from headrace.store.deadline_rows import renew_for_attempt, set_deadlines
from headrace.store.definitions import Definitions
from headrace.store.sql import Sql

_json = msgspec.json.Encoder()

INSERT_RUNS = Sql(
    """
    INSERT INTO run (workflow_id, key, type, state, logical_at, unique_at, interval_start, interval_end, run_after,
                     params, note, backfill_id, backfill_order, partition_key, partition_at, created_at)
    SELECT workflow_id, key, type, 'queued', logical_at, unique_at, interval_start, interval_end, run_after, params,
           note, backfill_id, backfill_order, partition_key, partition_at, created_at FROM ROWS(:rows) WHERE true
    ON CONFLICT DO NOTHING RETURNING id, workflow_id, key
    """,
    rows=(
        ("workflow_id", "bigint"), ("key", "text"), ("type", "text"), ("logical_at", "bigint"),
        ("unique_at", "bigint"), ("interval_start", "bigint"), ("interval_end", "bigint"), ("run_after", "bigint"),
        ("params", "text"), ("note", "text"), ("backfill_id", "bigint"), ("backfill_order", "integer"),
        ("partition_key", "text"), ("partition_at", "bigint"), ("created_at", "bigint"),
    ),
)  # fmt: skip
INSERT_ATTEMPTS = Sql(
    """
    INSERT INTO attempt (run_id, number, name, workflow_id, workflow_version_id, state, is_cancel_requested, growth,
                         has_stores, resumes_attempt_id, plan, max_active_runs, max_active_tasks,
                         max_active_tasks_scope, created_at)
    SELECT r.run_id,
           (SELECT coalesce(max(earlier.number), 0) + 1 FROM attempt AS earlier WHERE earlier.run_id = r.run_id),
           r.name, r.workflow_id, r.version_id, 'queued', false, 0, false, r.resumes, r.plan,
           (SELECT CASE WHEN backfill.id IS NULL THEN r.max_active_runs ELSE backfill.max_active_runs END
            FROM run LEFT JOIN backfill ON backfill.id = run.backfill_id WHERE run.id = r.run_id),
           r.max_active_tasks, r.scope, r.created_at
    FROM (SELECT * FROM ROWS(:rows)) AS r WHERE true
    RETURNING id
    """,
    rows=(
        ("run_id", "bigint"), ("name", "text"), ("workflow_id", "bigint"), ("version_id", "bigint"),
        ("resumes", "bigint"), ("plan", "text"), ("max_active_runs", "integer"), ("max_active_tasks", "integer"),
        ("scope", "text"), ("created_at", "bigint"),
    ),
)  # fmt: skip
CURRENT_VERSION = Sql("SELECT id, current_version_id FROM workflow WHERE id = :id")
ACTIVE_ATTEMPT = Sql("SELECT number FROM attempt WHERE run_id = :run_id AND state IN ('queued', 'running')")
QUEUE_AGAIN = Sql(
    """
    UPDATE run SET state = 'queued', reason = NULL, started_at = NULL, ended_at = NULL, run_after = :now
    WHERE id = :run_id
    """
)


class NewRun(NamedTuple):
    """A run to be created."""

    workflow_id: int
    key: str
    type: str = "manual"
    logical_at: int | None = None
    interval_start: int | None = None
    interval_end: int | None = None
    run_after: int | None = None
    params: dict[str, Any] = {}
    is_repeatable: bool = False
    """Allow it beside another run for the same logical time, whatever the workflow says."""
    version_id: int | None = None
    """Which version of the workflow it runs. None: the newest."""
    attempt_name: str = ""
    plan: AttemptPlan = ORDINARY
    note: str | None = None
    """What a person has to say about it."""
    backfill_id: int | None = None
    """The backfill whose limit it counts for, in place of the workflow's …"""
    backfill_order: int | None = None
    """… and its place in there."""
    partition_key: str | None = None
    """The partition that it is for …"""
    partition_at: int | None = None
    """… and when the period begins that it stands for."""
    slot_at: int | None = None
    """The schedule's time of a run that has no logical time; a second run for it is refused."""


def create_run(tx: Transaction, new: NewRun, now: int) -> int | None:
    """Insert a run and its first attempt, both queued. None: a run with this key or logical time exists."""
    return create_runs(tx, [new], now)[0]


def create_runs(tx: Transaction, wanted: Sequence[NewRun], now: int) -> list[int | None]:
    """Insert runs with their first attempts, all queued. None in the place of one whose key or time is taken."""
    versions = [new.version_id or _current_version(tx, new.workflow_id) for new in wanted]
    definitions = tx.shared(Definitions)
    workflows = [definitions.version(tx, version_id).workflow for version_id in versions]
    rows = [_run_row(new, workflow, now) for new, workflow in zip(wanted, workflows, strict=True)]
    inserted = tx.ask_each(INSERT_RUNS, rows).rows() if rows else []
    run_ids = {(workflow_id, key): int(run_id) for run_id, workflow_id, key in inserted}
    # Taken out, because of two runs with one key only the first is there.
    created = [run_ids.pop((row["workflow_id"], row["key"]), None) for row in rows]
    made = [
        (run_id, workflow, _attempt_row(run_id, new.workflow_id, version_id, workflow, now, new.attempt_name, new.plan))
        for run_id, new, version_id, workflow in zip(created, wanted, versions, workflows, strict=True)
        if run_id is not None
    ]
    if made:
        tx.write_each(INSERT_ATTEMPTS, [row for _, _, row in made])
    for run_id, workflow, _ in made:
        set_deadlines(tx, run_id, workflow, now)
    return created


def _run_row(new: NewRun, workflow: Workflow, now: int) -> dict[str, Any]:
    return {
        "workflow_id": new.workflow_id,
        "key": storable(new.key),  # as it is given back, too
        "type": new.type,
        "logical_at": new.logical_at,
        "unique_at": _identity(new) if workflow.unique_logical_time and not new.is_repeatable else None,
        "interval_start": new.interval_start,
        "interval_end": new.interval_end,
        "run_after": new.run_after if new.run_after is not None else now,
        "params": _json.encode(new.params).decode(),
        "note": new.note,
        "backfill_id": new.backfill_id,
        "backfill_order": new.backfill_order,
        "partition_key": new.partition_key,
        "partition_at": new.partition_at,
        "created_at": now,
    }


def _identity(new: NewRun) -> int | None:
    return new.slot_at if new.logical_at is None else new.logical_at


def add_attempt(
    tx: Transaction,
    run_id: int,
    workflow_id: int,
    resumes: int | None,
    name: str,
    now: int,
    version_id: int | None = None,
    plan: AttemptPlan = ORDINARY,
) -> int:
    """Another pass over a run that has ended, with the workflow's newest version or another one.

    The run is queued again.
    """
    active = tx.run(ACTIVE_ATTEMPT, {"run_id": run_id})
    if active:
        raise StateError(f"cannot try run {run_id} again: its attempt {active[0][0]} has not ended yet")
    tx.change(QUEUE_AGAIN, {"run_id": run_id, "now": now})
    version_id = version_id or _current_version(tx, workflow_id)
    workflow = tx.shared(Definitions).version(tx, version_id).workflow
    renew_for_attempt(tx, run_id, workflow, now)
    row = _attempt_row(run_id, workflow_id, version_id, workflow, now, name, plan, resumes)
    ((attempt_id,),) = tx.ask_each(INSERT_ATTEMPTS, [row]).rows()
    return int(attempt_id)


def _current_version(tx: Transaction, workflow_id: int) -> int:
    rows = tx.run(CURRENT_VERSION, {"id": workflow_id})
    if not rows or rows[0][1] is None:
        raise NotFoundError(f"workflow {workflow_id} is not in the store")
    return int(rows[0][1])


def _attempt_row(
    run_id: int,
    workflow_id: int,
    version_id: int,
    workflow: Workflow,
    now: int,
    name: str,
    plan: AttemptPlan,
    resumes: int | None = None,
) -> dict[str, Any]:
    return {
        "run_id": run_id,
        "name": name,
        "workflow_id": workflow_id,
        "version_id": version_id,
        "resumes": resumes,
        "plan": plan_to_json(plan),
        "max_active_runs": workflow.max_active_runs,
        "max_active_tasks": workflow.max_active_tasks,
        "scope": workflow.max_active_tasks_scope,
        "created_at": now,
    }
