"""Runs and attempts: started when their limits allow it, cancelled, timed out, cleared."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import partial
from itertools import islice
from typing import NamedTuple

from headrace.clock import from_micros
from headrace.definition import Node, Workflow
from headrace.errors import NotFoundError, StateError
from headrace.metrics.catalogue import RUN_LAG
from headrace.state import Actor, Advance, Attempt, Event, State, for_time, grow_tasks
from headrace.store.backfills import startable_backfills
from headrace.store.database import Reply, Transaction
from headrace.store.deadline_rows import look_at_passed, renew_for_clearing
from headrace.store.definitions import Definitions
from headrace.store.results import Committed, settle_and_flush
from headrace.store.run_graph import RunGraph
from headrace.store.sql import Sql

# Spelled so that of the indexes over runs only that of a workflow's active ones fits. PostgreSQL keeps a plan that it
# made while others were empty, and SQLite finds an index by its very words.
_QUEUED = "run.state IN ('queued', 'running') AND run.state <> 'running'"
STARTABLE = Sql(
    f"""
    SELECT attempt.id, run.type, run.run_after FROM attempt JOIN run ON run.id = attempt.run_id
    WHERE run.workflow_id = :workflow_id AND {_QUEUED} AND attempt.state = 'queued'
      AND run.run_after <= :now AND run.backfill_id IS NULL
    ORDER BY run.run_after, run.id LIMIT :limit [[postgres: FOR UPDATE OF attempt SKIP LOCKED]]
    """
)
# NO KEY: whoever inserted a run shares the workflow's key already, and two of them would wait for each other.
LOCK_WORKFLOWS = Sql(
    f"""
    SELECT id, is_paused, EXISTS (
      SELECT 1 FROM run WHERE run.workflow_id = workflow.id AND {_QUEUED} AND coalesce(run.backfill_id, 0) <> 0
    )
    FROM workflow WHERE id IN :ids[] ORDER BY id [[postgres: FOR NO KEY UPDATE]]
    """
)
RUNNING_RUNS = Sql(
    """
    SELECT count(*) FROM run
    WHERE workflow_id = :workflow_id AND state IN ('queued', 'running') AND state = 'running'
      AND coalesce(backfill_id, 0) = :backfill_id
    """
)
SET_TIMEOUT = Sql("UPDATE attempt SET timeout_at = :timeout_at WHERE id = :id")
BACKFILL_OF_RUN = Sql("SELECT coalesce(backfill_id, 0) FROM run WHERE id = :run_id")
TIME_OF_RUN = Sql("SELECT logical_at, type FROM run WHERE id = :run_id")
LATEST_ATTEMPT = Sql("SELECT max(id) FROM attempt WHERE run_id = :run_id")


class _Lane(NamedTuple):
    """Queued attempts that share a limit, in their order."""

    workflow_id: int
    backfill_id: int
    """0: of no backfill."""
    attempt_ids: list[int]
    due: Sequence[tuple[int, str, int]] = ()
    """Of no backfill: the attempts with the types of their runs and when those were due."""


def start_queued_runs(tx: Transaction, workflow_id: int, now: int, limit: int = 100) -> Committed | None:
    """Start the oldest queued runs of a workflow that is not paused, as many as its limit allows.

    Those of backfills come after the others, in an order and within a limit of their own.
    """
    return start_queued_runs_of(tx, [workflow_id], now, limit)


def start_queued_runs_of(
    tx: Transaction, workflow_ids: Collection[int], now: int, limit: int = 100, graph: RunGraph | None = None
) -> Committed | None:
    """As `start_queued_runs`, for many workflows at once; `limit` is for each of them.

    With `graph`: the transaction goes on with it, and knows what was scheduled.
    """
    lanes = _lanes(tx, workflow_ids, now, limit)
    if not lanes:
        return None
    graph = graph or RunGraph(tx, now)
    graph.lock(attempt_id for lane in lanes for attempt_id in lane.attempt_ids)
    tx.shared(Definitions).load(tx, [attempt.workflow_version_id for attempt in graph.attempts])
    running = [(lane, _ask_running(tx, lane, graph.attempt(lane.attempt_ids[0]))) for lane in lanes]
    starting = {
        attempt_id: graph.attempt(attempt_id)
        for lane, reply in running
        for attempt_id in lane.attempt_ids[: _room(graph.attempt(lane.attempt_ids[0]), reply)]
    }
    advance = Advance(graph)
    _start(tx, graph, advance, list(starting.values()))
    tx.after_commit += [
        partial(_note_lag, type_, now - run_after)
        for lane in lanes
        for attempt_id, type_, run_after in lane.due
        if attempt_id in starting
    ]
    committed = settle_and_flush(advance, graph)
    tx.should_notify = tx.should_notify or committed.scheduled + committed.scheduled_inline > 0
    return committed


def _lanes(tx: Transaction, workflow_ids: Collection[int], now: int, limit: int) -> list[_Lane]:
    locked = tx.run(LOCK_WORKFLOWS, {"ids": sorted(workflow_ids)}) if workflow_ids else []
    # All questions before the first answer, so that they travel together.
    asked = [
        (workflow_id, has_backfill, tx.ask(STARTABLE, {"workflow_id": workflow_id, "now": now, "limit": limit}))
        for workflow_id, is_paused, has_backfill in locked
        if not is_paused
    ]
    lanes = []
    for workflow_id, has_backfill, reply in asked:
        due = reply.rows()
        lanes += [_Lane(workflow_id, 0, [row[0] for row in due], due)]
        if has_backfill:
            lanes += [_Lane(workflow_id, *lane) for lane in startable_backfills(tx, workflow_id, now, limit)]
    return [lane for lane in lanes if lane.attempt_ids]


def _note_lag(type_: str, micros: int) -> None:
    RUN_LAG.observe(micros / 1e6, type_)


def start_attempt(tx: Transaction, attempt_id: int, now: int) -> Committed:
    """Start one queued attempt now, whatever limits and pauses say."""
    graph = RunGraph(tx, now)
    graph.lock([attempt_id])
    advance = Advance(graph)
    _start(tx, graph, advance, [graph.attempt(attempt_id)])
    tx.should_notify = True
    return settle_and_flush(advance, graph)


def _ask_running(tx: Transaction, lane: _Lane, attempt: Attempt) -> Reply | None:
    """How many runs count for the same limit; None: there is no limit."""
    if attempt.max_active_runs is None:
        return None
    return tx.ask(RUNNING_RUNS, {"workflow_id": lane.workflow_id, "backfill_id": lane.backfill_id})


def _room(attempt: Attempt, running: Reply | None) -> int | None:
    if attempt.max_active_runs is None or running is None:
        return None
    ((count,),) = running.rows()
    return max(0, attempt.max_active_runs - int(count))


def _has_room(tx: Transaction, attempt: Attempt) -> bool:
    """Whether one more run of its kind may go on; nobody starts another until the transaction ends."""
    if attempt.max_active_runs is None:
        return True
    tx.run(LOCK_WORKFLOWS, {"ids": [attempt.workflow_id]})
    ((backfill_id,),) = tx.run(BACKFILL_OF_RUN, {"run_id": attempt.run_id})
    lane = _Lane(attempt.workflow_id, backfill_id, [attempt.id])
    return _room(attempt, _ask_running(tx, lane, attempt)) != 0


def _start(tx: Transaction, graph: RunGraph, advance: Advance, attempts: Sequence[Attempt]) -> None:
    """Insert the whole task trees of attempts and open their roots; those opened again go on with what they have."""
    definitions = tx.shared(Definitions)
    workflows = {one.id: definitions.version(tx, one.workflow_version_id).workflow for one in attempts}
    new = [attempt for attempt in attempts if attempt.root_id is None]
    trees = [graph.plan(one.id).nodes(_for_time_of(tx, one.run_id, workflows[one.id].nodes)) for one in new]
    ids = iter(graph.new_ids(sum(map(len, trees))))
    for attempt in attempts:
        _limit_time(tx, attempt.id, workflows[attempt.id], graph.now)
        if attempt.root_id is not None:
            advance.begin_again(attempt)
    for attempt, nodes in zip(new, trees, strict=True):
        own_ids = list(islice(ids, len(nodes)))
        growth = grow_tasks(nodes, own_ids, attempt_id=attempt.id, under=None, generation=0, grown_by=None)
        graph.add(growth.tasks, growth.edges)
        attempt.root_id = growth.tasks[0].id
        look_at_passed(tx, attempt.run_id, workflows[attempt.id], graph.now)
        resumed = graph.carry_over(growth.tasks) if attempt.resumes_attempt_id is not None else []
        advance.start(attempt, growth.tasks[0], resumed)


def _for_time_of(tx: Transaction, run_id: int, nodes: Sequence[Node]) -> Sequence[Node]:
    """The nodes that are for the time which a run is about; most workflows have no others."""
    if all(node.not_before is None and node.not_after is None for node in nodes):
        return nodes
    ((logical_at, type_),) = tx.run(TIME_OF_RUN, {"run_id": run_id})
    at = None if logical_at is None else from_micros(logical_at)
    # A backfill makes up for what came before.
    return for_time(nodes, at, ignores_beginnings=type_ == "backfill")


def _limit_time(tx: Transaction, attempt_id: int, workflow: Workflow, now: int) -> None:
    if workflow.timeout_seconds is not None:
        timeout_at = now + round(workflow.timeout_seconds * 1_000_000)
        tx.write(SET_TIMEOUT, {"id": attempt_id, "timeout_at": timeout_at})


def _clear(tx: Transaction, graph: RunGraph, advance: Advance, attempt_id: int, task_ids: list[int]) -> None:
    """Clear tasks of a locked attempt. A run that had ended has all its time again, as soon as its limit has room."""
    attempt = graph.attempt(attempt_id)
    had_ended = attempt.state not in ("queued", "running")
    advance.clear(graph.tasks(task_ids))
    if had_ended and attempt.state == "running" and not _has_room(tx, attempt):
        advance.hold(attempt)
    elif had_ended:
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
