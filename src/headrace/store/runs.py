"""Runs and attempts: created, started when their limits allow it, cancelled, timed out, cleared."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import msgspec

from headrace.definition import Workflow
from headrace.errors import NotFoundError, StateError
from headrace.metrics.catalogue import RUN_LAG
from headrace.state import Actor, Advance, Attempt, Event, State, grow_tasks
from headrace.store.attempt_plans import ORDINARY, AttemptPlan, plan_to_json
from headrace.store.backfills import startable_backfills
from headrace.store.database import Transaction
from headrace.store.deadline_rows import look_at_passed, renew_for_attempt, renew_for_clearing, set_deadlines
from headrace.store.definitions import Definitions
from headrace.store.results import Committed, settle_and_flush
from headrace.store.run_graph import RunGraph
from headrace.store.sql import Sql

_json = msgspec.json.Encoder()

INSERT_RUN = Sql(
    """
    INSERT INTO run (workflow_id, key, type, state, logical_at, unique_at, interval_start, interval_end, run_after,
                     params, note, backfill_id, backfill_order, created_at)
    VALUES (:workflow_id, :key, :type, 'queued', :logical_at, :unique_at, :interval_start, :interval_end, :run_after,
            :params, :note, :backfill_id, :backfill_order, :now)
    ON CONFLICT DO NOTHING RETURNING id
    """
)
INSERT_ATTEMPT = Sql(
    """
    INSERT INTO attempt (run_id, number, name, workflow_id, workflow_version_id, state, is_cancel_requested, growth,
                         has_stores, resumes_attempt_id, plan, max_active_runs, max_active_tasks,
                         max_active_tasks_scope, created_at)
    SELECT :run_id, coalesce(max(number), 0) + 1, :name, :workflow_id, :version_id, 'queued', :no, 0, :no, :resumes,
           :plan,
           (SELECT CASE WHEN backfill.id IS NULL THEN CAST(:max_active_runs AS integer)
                        ELSE backfill.max_active_runs END
            FROM run LEFT JOIN backfill ON backfill.id = run.backfill_id WHERE run.id = :run_id),
           :max_active_tasks, :scope, :now
    FROM attempt WHERE run_id = :run_id
    RETURNING id
    """
)
CURRENT_VERSION = Sql("SELECT id, current_version_id FROM workflow WHERE id = :id")
STARTABLE = Sql(
    """
    SELECT attempt.id, run.type, run.run_after FROM attempt JOIN run ON run.id = attempt.run_id
    WHERE run.workflow_id = :workflow_id AND run.state = 'queued' AND attempt.state = 'queued'
      AND run.run_after <= :now AND run.backfill_id IS NULL
    ORDER BY run.run_after, run.id LIMIT :limit [[postgres: FOR UPDATE OF attempt SKIP LOCKED]]
    """
)
# NO KEY: whoever inserted a run shares the workflow's key already, and two of them would wait for each other.
LOCK_WORKFLOW = Sql(
    """
    SELECT id, is_paused, EXISTS (
      SELECT 1 FROM run WHERE run.workflow_id = workflow.id AND run.state = 'queued' AND run.backfill_id IS NOT NULL
    )
    FROM workflow WHERE id = :id [[postgres: FOR NO KEY UPDATE]]
    """
)
RUNNING_RUNS = Sql(
    """
    SELECT count(*) FROM run
    WHERE workflow_id = :workflow_id AND state = 'running' AND coalesce(backfill_id, 0) = :backfill_id
    """
)
SET_TIMEOUT = Sql("UPDATE attempt SET timeout_at = :timeout_at WHERE id = :id")
ACTIVE_ATTEMPT = Sql("SELECT number FROM attempt WHERE run_id = :run_id AND state IN ('queued', 'running')")
QUEUE_AGAIN = Sql(
    """
    UPDATE run SET state = 'queued', reason = NULL, started_at = NULL, ended_at = NULL, run_after = :now
    WHERE id = :run_id
    """
)
LATEST_ATTEMPT = Sql("SELECT max(id) FROM attempt WHERE run_id = :run_id")


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


def create_run(tx: Transaction, new: NewRun, now: int) -> int | None:
    """Insert a run and its first attempt, both queued. None: a run with this key or logical time exists."""
    version_id = new.version_id or _current_version(tx, new.workflow_id)
    workflow = tx.shared(Definitions).version(tx, version_id).workflow
    parameters = {
        **new._asdict(),
        "plan": None,
        "unique_at": new.logical_at if workflow.unique_logical_time and not new.is_repeatable else None,
        "run_after": new.run_after if new.run_after is not None else now,
        "params": _json.encode(new.params).decode(),
        "now": now,
    }
    rows = tx.run(INSERT_RUN, parameters)
    if not rows:
        return None
    run_id = int(rows[0][0])
    _insert_attempt(tx, run_id, new.workflow_id, version_id, workflow, now, name=new.attempt_name, plan=new.plan)
    set_deadlines(tx, run_id, workflow, now)
    return run_id


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
    return _insert_attempt(tx, run_id, workflow_id, version_id, workflow, now, resumes, name, plan)


def _current_version(tx: Transaction, workflow_id: int) -> int:
    rows = tx.run(CURRENT_VERSION, {"id": workflow_id})
    if not rows or rows[0][1] is None:
        raise NotFoundError(f"workflow {workflow_id} is not in the store")
    return int(rows[0][1])


def _insert_attempt(
    tx: Transaction,
    run_id: int,
    workflow_id: int,
    version_id: int,
    workflow: Workflow,
    now: int,
    resumes: int | None = None,
    name: str = "",
    plan: AttemptPlan = ORDINARY,
) -> int:
    parameters = {
        "run_id": run_id,
        "name": name,
        "workflow_id": workflow_id,
        "version_id": version_id,
        "max_active_runs": workflow.max_active_runs,
        "max_active_tasks": workflow.max_active_tasks,
        "scope": workflow.max_active_tasks_scope,
        "resumes": resumes,
        "plan": plan_to_json(plan),
        "no": False,
        "now": now,
    }
    ((attempt_id,),) = tx.run(INSERT_ATTEMPT, parameters)
    return int(attempt_id)


def start_queued_runs(tx: Transaction, workflow_id: int, now: int, limit: int = 100) -> Committed | None:
    """Start the oldest queued runs of a workflow that is not paused, as many as its limit allows.

    Those of backfills come after the others, in an order and within a limit of their own.
    """
    ((_, is_paused, has_backfill),) = tx.run(LOCK_WORKFLOW, {"id": workflow_id})
    if is_paused:
        return None
    rows = tx.run(STARTABLE, {"workflow_id": workflow_id, "now": now, "limit": limit})
    lanes = [(0, [row[0] for row in rows])] if rows else []
    lanes += startable_backfills(tx, workflow_id, now, limit) if has_backfill else []
    if not lanes:
        return None
    graph = RunGraph(tx, now)
    graph.lock(attempt_id for _, attempt_ids in lanes for attempt_id in attempt_ids)
    advance = Advance(graph)
    for backfill_id, attempt_ids in lanes:
        room = _room(tx, workflow_id, graph.attempt(attempt_ids[0]), backfill_id)
        for attempt_id in attempt_ids[:room]:
            _start(tx, graph, advance, graph.attempt(attempt_id))
        if backfill_id == 0:
            tx.after_commit += [partial(_note_lag, type_, now - run_after) for _, type_, run_after in rows[:room]]
    committed = settle_and_flush(advance, graph)
    tx.should_notify = tx.should_notify or committed.scheduled + committed.scheduled_inline > 0
    return committed


def _note_lag(type_: str, micros: int) -> None:
    RUN_LAG.observe(micros / 1e6, type_)


def start_attempt(tx: Transaction, attempt_id: int, now: int) -> Committed:
    """Start one queued attempt now, whatever limits and pauses say."""
    graph = RunGraph(tx, now)
    graph.lock([attempt_id])
    advance = Advance(graph)
    _start(tx, graph, advance, graph.attempt(attempt_id))
    tx.should_notify = True
    return settle_and_flush(advance, graph)


def _room(tx: Transaction, workflow_id: int, attempt: Attempt, backfill_id: int) -> int | None:
    if attempt.max_active_runs is None:
        return None
    ((running,),) = tx.run(RUNNING_RUNS, {"workflow_id": workflow_id, "backfill_id": backfill_id})
    return max(0, attempt.max_active_runs - int(running))


def _start(tx: Transaction, graph: RunGraph, advance: Advance, attempt: Attempt) -> None:
    """Insert the whole task tree of an attempt and open its root."""
    workflow = tx.shared(Definitions).version(tx, attempt.workflow_version_id).workflow
    nodes = graph.plan(attempt.id).nodes(workflow.nodes)
    ids = graph.new_ids(len(nodes))
    growth = grow_tasks(nodes, ids, attempt_id=attempt.id, under=None, generation=0, grown_by=None)
    graph.add(growth.tasks, growth.edges)
    attempt.root_id = growth.tasks[0].id
    look_at_passed(tx, attempt.run_id, workflow, graph.now)
    _limit_time(tx, attempt.id, workflow, graph.now)
    resumed = graph.carry_over(growth.tasks) if attempt.resumes_attempt_id is not None else []
    advance.start(attempt, growth.tasks[0], resumed)


def _limit_time(tx: Transaction, attempt_id: int, workflow: Workflow, now: int) -> None:
    if workflow.timeout_seconds is not None:
        timeout_at = now + round(workflow.timeout_seconds * 1_000_000)
        tx.write(SET_TIMEOUT, {"id": attempt_id, "timeout_at": timeout_at})


def _clear(tx: Transaction, graph: RunGraph, advance: Advance, attempt_id: int, task_ids: list[int]) -> None:
    """Clear tasks of a locked attempt. A run that had ended has all its time again."""
    had_ended = graph.attempt(attempt_id).state not in ("queued", "running")
    advance.clear(graph.tasks(task_ids))
    if had_ended:
        _limit_time(tx, attempt_id, graph.workflow(attempt_id), graph.now)


def cancel_attempt(tx: Transaction, attempt_id: int, now: int) -> Committed:
    """Ask a run to stop. What runs is stopped by its agent; everything else ends now."""
    graph = RunGraph(tx, now)
    graph.lock([attempt_id])
    attempt = graph.attempt(attempt_id)
    if attempt.state not in ("queued", "running"):
        raise StateError(f"cannot stop run {attempt.run_id}: it already ended as `{attempt.state}`")
    advance = Advance(graph)
    if attempt.root_id is None:
        _abandon(graph, attempt)
    else:
        advance.cancel(attempt)
    tx.should_notify = True
    return settle_and_flush(advance, graph)


def _abandon(graph: RunGraph, attempt: Attempt, state: State = State.CANCELED) -> None:
    """It never started, so there is nothing to stop."""
    graph.record(Event(attempt.id, None, attempt.state, state, Actor.USER, 0, graph.now))
    attempt.state, attempt.ended_at, attempt.is_changed = str(state), graph.now, True


def time_out_attempt(tx: Transaction, attempt_id: int, now: int) -> Committed:
    """A run took longer than its workflow allows."""
    graph = RunGraph(tx, now)
    graph.lock([attempt_id])
    attempt = graph.attempt(attempt_id)
    advance = Advance(graph)
    if attempt.state == "running":
        workflow = tx.shared(Definitions).version(tx, attempt.workflow_version_id).workflow
        advance.time_out(attempt, State.SKIPPED if workflow.on_timeout == "skip" else State.CANCELED)
        tx.should_notify = True
    return settle_and_flush(advance, graph)


def clear_tasks(tx: Transaction, attempt_id: int, task_ids: list[int], now: int) -> Committed:
    """Give tasks of an attempt a new series of tries; the run goes on."""
    graph = RunGraph(tx, now)
    graph.lock([attempt_id])
    advance = Advance(graph)
    _clear(tx, graph, advance, attempt_id, task_ids)
    renew_for_clearing(tx, graph.attempt(attempt_id).run_id, graph.workflow(attempt_id), now)
    tx.should_notify = True
    return settle_and_flush(advance, graph)


def mark_tasks(
    tx: Transaction, attempt_id: int, task_ids: list[int], state: State, now: int, cleared_ids: list[int]
) -> Committed:
    """Say how tasks of an attempt ended, and clear others that are to be decided again because of it."""
    graph = RunGraph(tx, now)
    graph.lock([attempt_id])
    advance = Advance(graph)
    advance.mark(graph.tasks(task_ids), state)
    if cleared_ids:
        _clear(tx, graph, advance, attempt_id, cleared_ids)
    tx.should_notify = True
    return settle_and_flush(advance, graph)


def mark_attempt(tx: Transaction, attempt_id: int, state: State, now: int) -> Committed:
    """Say how a run ended. What works on it is stopped; what cleans up still runs, and then the run has ended."""
    graph = RunGraph(tx, now)
    graph.lock([attempt_id])
    attempt = graph.attempt(attempt_id)
    advance = Advance(graph)
    if attempt.root_id is None:
        _abandon(graph, attempt, state)
    else:
        advance.mark_run(attempt, state)
    tx.should_notify = True
    return settle_and_flush(advance, graph)


def latest_attempt(tx: Transaction, run_id: int) -> int:
    ((attempt_id,),) = tx.run(LATEST_ATTEMPT, {"run_id": run_id})
    if attempt_id is None:
        raise NotFoundError(f"there is no run {run_id}")
    return int(attempt_id)
