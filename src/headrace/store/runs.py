"""Runs and attempts: started when their limits allow it, cancelled, timed out, cleared."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import Any, NamedTuple

from headrace.clock import from_micros
from headrace.definition import Node, Workflow
from headrace.errors import NotFoundError, StateError
from headrace.metrics.catalogue import RUN_LAG
from headrace.state import Actor, Advance, Attempt, Event, State, for_time, grow_tasks
from headrace.store.active_runs import IS_QUEUED, IS_RUNNING
from headrace.store.backfills import startable_backfills
from headrace.store.database import Reply, Transaction
from headrace.store.deadline_rows import look_at_passed, renew_for_clearing
from headrace.store.definitions import Definitions
from headrace.store.news import News
from headrace.store.results import Committed, settle_and_flush, tell_of
from headrace.store.run_facts import FACTS, RunFacts
from headrace.store.run_graph import LOCKED, RunGraph
from headrace.store.sql import Sql

_RUNNING = f"""
    SELECT count(*) FROM run
    WHERE run.workflow_id = :workflow_id AND {IS_RUNNING}
      AND coalesce(run.backfill_id, 0) = :backfill_id AND NOT (run.id IN :ended[])
    """
RUNNING_RUNS = Sql(_RUNNING)
# How many are running is asked of the database only where it matters, and once however many are found. Who starts a run
# often takes its first task at once, and so is told what tasks are told of it.
STARTABLE = Sql(
    f"""
    SELECT CASE WHEN attempt.max_active_runs IS NULL THEN 0 ELSE ({_RUNNING}) END, {FACTS}, {LOCKED}
    FROM attempt JOIN run ON run.id = attempt.run_id
    WHERE run.workflow_id = :workflow_id AND {IS_QUEUED} AND attempt.state = 'queued'
      AND coalesce(run.backfill_id, 0) = 0 AND coalesce(run.backfill_order, 0) = 0 AND run.run_after <= :now
    ORDER BY run.run_after, run.id LIMIT :limit [[postgres: FOR UPDATE OF attempt SKIP LOCKED]]
    """
)
# NO KEY: whoever inserted a run shares the workflow's key already, and two of them would wait for each other.
LOCK_WORKFLOWS = Sql(
    f"""
    SELECT id, is_paused, coalesce((
      SELECT coalesce(run.backfill_id, 0) FROM run WHERE run.workflow_id = workflow.id AND {IS_QUEUED}
      ORDER BY coalesce(run.backfill_id, 0) DESC LIMIT 1
    ), 0) > 0
    FROM workflow WHERE id IN :ids[] ORDER BY id [[postgres: FOR NO KEY UPDATE]]
    """
)
SET_TIMEOUT = Sql("UPDATE attempt SET timeout_at = :timeout_at WHERE id = :id")
BACKFILL_OF_RUN = Sql("SELECT coalesce(backfill_id, 0) FROM run WHERE id = :run_id")
TIME_OF_RUN = Sql("SELECT logical_at, type FROM run WHERE id = :run_id")
LATEST_ATTEMPT = Sql("SELECT max(id) FROM attempt WHERE run_id = :run_id")


_FACTS = len(RunFacts._fields)
_MOST_EXPECTED_IDS = 1000
"""Large runs take so long that a trip for their ids does not matter."""


class _Lane(NamedTuple):
    """Queued attempts that share a limit, in their order."""

    attempt_ids: list[int]
    running: int
    """How many runs count for the limit already."""


def start_queued_runs(tx: Transaction, workflow_id: int, now: int, limit: int = 100) -> Committed | None:
    """Start the oldest queued runs of a workflow that is not paused, as many as its limit allows.

    Those of backfills come after the others, in an order and within a limit of their own.
    """
    return start_queued_runs_of(tx, [workflow_id], now, limit)


def start_queued_runs_of(
    tx: Transaction, workflow_ids: Collection[int], now: int, limit: int = 100
) -> Committed | None:
    """As `start_queued_runs`, for many workflows at once; `limit` is for each of them."""
    graph = RunGraph(tx, now)
    advance = _start_queued(tx, graph, dict.fromkeys(workflow_ids, limit))
    if advance is None:
        return None
    committed = settle_and_flush(advance, graph)
    tell_of(tx, graph, [committed])
    return committed


def start_in_place_of(tx: Transaction, graph: RunGraph, ended: Sequence[Attempt]) -> None:
    """Runs have ended in this transaction: start those of the same workflows that waited for it.

    The caller flushes the graph, by which they have ended.
    """
    if ended:
        tx.tell(News.ENDS)
    if any(attempt.max_active_runs is None for attempt in ended):
        # Runs of a later version, which has a limit, may have waited for these; it takes a scheduler to see that.
        tx.tell(News.PLANS)
    places = Counter(attempt.workflow_id for attempt in ended if attempt.max_active_runs is not None)
    if not places:
        return
    if graph.may_decide_by_past:
        graph.flush()
    graph.expect_new_ids(min(sum(len(graph.workflow(attempt.id).nodes) for attempt in ended), _MOST_EXPECTED_IDS))
    advance = _start_queued(tx, graph, places, [attempt.run_id for attempt in ended])
    if advance is not None:
        advance.settle()
        if advance.ended:
            tx.tell(News.PLANS)  # those that had nothing to run have made room for others


def _start_queued(
    tx: Transaction, graph: RunGraph, most: Mapping[int, int], ended_run_ids: Sequence[int] = ()
) -> Advance | None:
    """Start at most so many runs of each workflow. `ended_run_ids`: the database does not know yet that these have."""
    lanes = _lanes(tx, graph, most, ended_run_ids)
    if not lanes:
        return None
    tx.shared(Definitions).load(tx, [attempt.workflow_version_id for attempt in graph.attempts])
    starting = [
        graph.attempt(attempt_id)
        for lane in lanes
        for attempt_id in lane.attempt_ids[: _room(graph.attempt(lane.attempt_ids[0]), lane.running)]
    ]
    advance = Advance(graph)
    _start(tx, graph, advance, starting)
    return advance


def _lanes(tx: Transaction, graph: RunGraph, most: Mapping[int, int], ended_run_ids: Sequence[int]) -> list[_Lane]:
    # All questions before the first answer, so that they travel together.
    locked = tx.ask(LOCK_WORKFLOWS, {"ids": sorted(most)})
    asked = {
        workflow_id: tx.ask(
            STARTABLE, {**_lane_key(workflow_id, 0, ended_run_ids), "now": graph.now, "limit": most[workflow_id]}
        )
        for workflow_id in sorted(most)
    }
    lanes = []
    for workflow_id, is_paused, has_backfill in locked.rows():
        if not is_paused:
            lanes += _due_lanes(tx, graph, asked[workflow_id])
        if not is_paused and has_backfill:
            lanes += _backfill_lanes(tx, graph, workflow_id, most[workflow_id], ended_run_ids)
    return lanes


def _due_lanes(tx: Transaction, graph: RunGraph, startable: Reply) -> list[_Lane]:
    """Of no backfill: one at most."""
    rows = startable.rows()
    attempt_ids = []
    for _, *row in rows:
        facts, locked = RunFacts(*row[:_FACTS]), row[_FACTS:]
        graph.take_locked(locked, facts)
        tx.after_commit.append(partial(_note_lag, graph.attempt(locked[0]), facts))
        attempt_ids.append(locked[0])
    return [_Lane(attempt_ids, rows[0][0])] if rows else []


def _backfill_lanes(
    tx: Transaction, graph: RunGraph, workflow_id: int, most: int, ended_run_ids: Sequence[int]
) -> list[_Lane]:
    found = startable_backfills(tx, workflow_id, graph.now, most)
    graph.lock(attempt_id for _, attempt_ids in found for attempt_id in attempt_ids)
    counts = [tx.ask(RUNNING_RUNS, _lane_key(workflow_id, backfill_id, ended_run_ids)) for backfill_id, _ in found]
    return [_Lane(attempt_ids, count.rows()[0][0]) for (_, attempt_ids), count in zip(found, counts, strict=True)]


def _lane_key(workflow_id: int, backfill_id: int, ended_run_ids: Sequence[int] = ()) -> dict[str, Any]:
    return {"workflow_id": workflow_id, "backfill_id": backfill_id, "ended": list(ended_run_ids)}


def _note_lag(attempt: Attempt, facts: RunFacts) -> None:
    """How late a run was, if there was room for it."""
    if attempt.started_at is not None:
        RUN_LAG.observe((attempt.started_at - facts.run_after) / 1e6, facts.type)


def start_attempt(tx: Transaction, attempt_id: int, now: int) -> Committed:
    """Start one queued attempt now, whatever limits and pauses say."""
    graph = RunGraph(tx, now)
    graph.lock([attempt_id])
    advance = Advance(graph)
    _start(tx, graph, advance, [graph.attempt(attempt_id)])
    tx.tell()
    return settle_and_flush(advance, graph)


def _room(attempt: Attempt, running: int) -> int | None:
    return None if attempt.max_active_runs is None else max(0, attempt.max_active_runs - running)


def _has_room(tx: Transaction, attempt: Attempt) -> bool:
    """Whether one more run of its kind may go on; nobody starts another until the transaction ends."""
    if attempt.max_active_runs is None:
        return True
    tx.run(LOCK_WORKFLOWS, {"ids": [attempt.workflow_id]})
    ((backfill_id,),) = tx.run(BACKFILL_OF_RUN, {"run_id": attempt.run_id})
    ((running,),) = tx.run(RUNNING_RUNS, _lane_key(attempt.workflow_id, backfill_id))
    return _room(attempt, running) != 0


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
        tx.tell(News.PLANS)


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
    tx.tell()
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
        tx.tell()
    return settle_and_flush(advance, graph)


def clear_tasks(tx: Transaction, attempt_id: int, task_ids: list[int], now: int) -> Committed:
    """Give tasks of an attempt a new series of tries; the run goes on."""
    graph = RunGraph(tx, now)
    graph.lock([attempt_id])
    advance = Advance(graph)
    _clear(tx, graph, advance, attempt_id, task_ids)
    renew_for_clearing(tx, graph.attempt(attempt_id).run_id, graph.workflow(attempt_id), now)
    tx.tell()
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
    tx.tell()
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
    tx.tell()
    return settle_and_flush(advance, graph)


def latest_attempt(tx: Transaction, run_id: int) -> int:
    ((attempt_id,),) = tx.run(LATEST_ATTEMPT, {"run_id": run_id})
    if attempt_id is None:
        raise NotFoundError(f"there is no run {run_id}")
    return int(attempt_id)
