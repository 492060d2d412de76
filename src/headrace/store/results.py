"""Whoever finishes advances: results are recorded and followed to their consequences in one transaction."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from headrace.definition import storable
from headrace.handoff import TaskError, TaskResult
from headrace.state import HELD, INLINE_QUEUE, Actor, Advance, State, Task, accepts, vetted
from headrace.store.assets import Cause, emit_events
from headrace.store.database import Transaction
from headrace.store.news import News
from headrace.store.run_graph import RunGraph
from headrace.store.sql import Sql

_json = msgspec.json.Encoder()

INSERT_TRIES = Sql(
    """
    INSERT INTO try (task_id, fence, try_number, agent_id, state, started_at, ended_at, error, log)
    SELECT task_id, fence, try_number, agent_id, state, started_at, ended_at, error, log FROM ROWS(:rows)
    """,
    rows=(
        ("task_id", "bigint"), ("fence", "integer"), ("try_number", "integer"), ("agent_id", "bigint"),
        ("state", "text"), ("started_at", "bigint"), ("ended_at", "bigint"), ("error", "text"), ("log", "text"),
    ),
)  # fmt: skip
UPSERT_VALUES = Sql(
    """
    INSERT INTO value (task_id, name, attempt_id, kind, document, length)
    SELECT task_id, name, attempt_id, kind, document, length FROM ROWS(:rows) WHERE true
    ON CONFLICT (task_id, kind, name) DO UPDATE SET document = excluded.document, length = excluded.length
    """,
    rows=(
        ("task_id", "bigint"), ("name", "text"), ("attempt_id", "bigint"), ("kind", "text"), ("document", "text"),
        ("length", "integer"),
    ),
)  # fmt: skip
COUNT_TASKS = Sql("SELECT count(*) FROM task WHERE attempt_id = :attempt_id AND NOT is_superseded")
MARK_STORES = Sql("UPDATE attempt SET has_stores = :yes WHERE id IN :ids[]")


class Report(NamedTuple):
    """A result on its way to the store, with what the agent knows beside it."""

    attempt_id: int
    result: TaskResult
    log: str | None = None


class Committed(NamedTuple):
    """What became of a batch of reports."""

    stale: list[Report]
    """Those whose task had been taken away meanwhile; they changed nothing."""
    ended_attempts: list[int]
    scheduled: int
    """How many tasks became claimable."""
    scheduled_inline: int


def record_results(
    tx: Transaction, graph: RunGraph, reports: Sequence[Report], max_tasks: int | None = None
) -> Committed:
    """Apply results and write what follows from them. The caller flushes the graph's events."""
    committed = apply_results(tx, graph, reports, max_tasks)
    graph.flush()
    return committed


def apply_results(
    tx: Transaction,
    graph: RunGraph,
    reports: Sequence[Report],
    max_tasks: int | None = None,
    asking: Callable[[], None] | None = None,
) -> Committed:
    """Apply results and advance the runs that they belong to. The caller flushes the graph and its events.

    `max_tasks` is how many tasks a run may have; a result that would add more is a failure. `asking` is called for
    questions that are to travel with the first ones.
    """
    attempts = {report.attempt_id for report in reports}
    ended = graph.load_with_parents([report.result.task_id for report in reports], locking=attempts, asking=asking)
    tasks = {task.id: task for task in ended}
    accepted, stale = _sort_out(tasks, reports)
    accepted = [r._replace(result=vetted(graph, tasks[r.result.task_id], r.result)) for r in accepted]
    if max_tasks is not None:
        accepted = list(_fitting(tx, accepted, max_tasks))
    graph.note_stores(write_values(tx, [(tasks[report.result.task_id], report.result) for report in accepted]))
    advance = Advance(graph)
    # Read before the result is applied: a retry without delay has moved the task on by the time it is written.
    rows = [
        try_row(tasks[r.result.task_id], _TRY_STATES[r.result.outcome], r.result.error, r.log, graph.now)
        for r in accepted
        if r.result.has_begun
    ]
    applied = []
    for report in accepted:
        # One of them may have ended the rest of its run.
        if accepts(tasks[report.result.task_id], report.result.fence):
            advance.complete(tasks[report.result.task_id], report.result)
            applied.append((tasks[report.result.task_id], report.result))
    _emit_events(tx, applied, graph.now)
    write_tries(tx, rows)
    advance.settle()
    return _committed(advance, stale)


def _fitting(tx: Transaction, reports: Sequence[Report], max_tasks: int) -> Iterator[Report]:
    """The reports, with a failure in the place of each result that would make its run too big."""
    sizes: dict[int, int] = {}
    for report in reports:
        growth, attempt_id = len(report.result.growth), report.attempt_id
        if growth and attempt_id not in sizes:
            ((sizes[attempt_id],),) = tx.run(COUNT_TASKS, {"attempt_id": attempt_id})
        if growth and sizes[attempt_id] + growth > max_tasks:
            yield report._replace(result=_too_many(report.result, sizes[attempt_id], max_tasks))
            continue
        if growth:
            sizes[attempt_id] += growth
        yield report


def _too_many(result: TaskResult, present: int, max_tasks: int) -> TaskResult:
    message = (
        f"too many tasks: the run has {present}, {len(result.growth)} would be added, and the limit is {max_tasks}"
        "\nhint: the setting is `limits.max_tasks_per_run`"
    )
    error = TaskError(type="TooManyTasks", message=message)
    return TaskResult(task_id=result.task_id, fence=result.fence, outcome="failed", error=error, is_retryable=False)


def _sort_out(tasks: Mapping[int, Task], reports: Sequence[Report]) -> tuple[list[Report], list[Report]]:
    """Those that may change their task and those that may not, such as the second one of two about one claim."""
    accepted: dict[int, Report] = {}
    stale = []
    for report in reports:
        task = tasks.get(report.result.task_id)
        if task is not None and task.id not in accepted and accepts(task, report.result.fence):
            accepted[task.id] = report
        else:
            stale.append(report)
    return list(accepted.values()), stale


def fail_tasks(tx: Transaction, graph: RunGraph, tasks: Sequence[Task], error: TaskError, actor: Actor) -> Committed:
    """End tries that nobody will report any more. The caller holds the attempts' locks."""
    advance = Advance(graph)
    rows = []
    for task in tasks:
        if task.state is State.QUEUED:
            advance.hand_back(task, actor)
            continue
        if task.state not in HELD:
            continue  # one of them has ended the rest of its run
        rows.append(try_row(task, State.FAILED, error, None, graph.now))
        advance.fail(task, error, actor, has_died=True)
    write_tries(tx, rows)
    advance.settle()
    graph.flush()
    return _committed(advance, [])


def settle_and_flush(advance: Advance, graph: RunGraph) -> Committed:
    """Follow the consequences of what was applied and write them, events included."""
    advance.settle()
    graph.flush()
    graph.flush_events()
    return _committed(advance, [])


def tell_of(
    tx: Transaction, graph: RunGraph, outcomes: Iterable[Committed] = (), refused: Collection[int] = ()
) -> None:
    """Say what of this is news for others: tasks that are left for them, times to wake up at, and runs that have ended.

    `outcomes` are those in which nobody took care yet of what waits for a run to end, `refused` the tasks that nobody
    can take at present.
    """
    left = [task for task in graph.scheduled() if task.id not in refused]
    inline = sum(task.queue == INLINE_QUEUE for task in left)
    if len(left) > inline:
        tx.tell(News.WORK, tasks=len(left) - inline)
    if inline:
        tx.tell(News.INLINE)
    if graph.has_timers:
        tx.tell(News.PLANS)
    if any(one.ended_attempts for one in outcomes):
        tx.tell(News.ENDS | News.PLANS)


def _committed(advance: Advance, stale: list[Report]) -> Committed:
    inline = sum(task.queue == INLINE_QUEUE for task in advance.scheduled)
    return Committed(stale, [attempt.id for attempt in advance.ended], len(advance.scheduled) - inline, inline)


_TRY_STATES = {
    "success": State.SUCCESS,
    "failed": State.FAILED,
    "skipped": State.SKIPPED,
    "again": State.UP_FOR_RESCHEDULE,
    "deferred": State.DEFERRED,
    "stopped": State.CANCELED,
}


def try_row(task: Task, state: State, error: TaskError | None, log: str | None, now: int) -> dict[str, Any]:
    """The record of an execution that ends now."""
    return {
        "task_id": task.id,
        "fence": task.fence,
        "try_number": task.try_number,
        "agent_id": task.agent_id,
        "state": state,
        "started_at": task.started_at,
        "ended_at": now,
        "error": _json.encode(error).decode() if error is not None else None,
        "log": log,
    }


def write_tries(tx: Transaction, rows: Sequence[dict[str, Any]]) -> None:
    """Record executions."""
    if rows:
        tx.write_each(INSERT_TRIES, rows)


def write_values(tx: Transaction, accepted: Sequence[tuple[Task, TaskResult]]) -> set[int]:
    """Store what executions leave behind for others. Returns the attempts in which some left parameters."""
    rows: list[dict[str, Any]] = []
    with_stores: set[int] = set()
    for task, result in accepted:
        # Two names that are stored as one would be two rows with one key, which no statement can write.
        for stored_name, name in {storable(name): name for name in result.values}.items():
            document = bytes(result.values[name]).decode()
            rows.append(_value_row(task, "result", stored_name, document, result.lengths.get(name)))
        if result.rendered:
            rows.append(_value_row(task, "shown", "rendered", _json.encode(result.rendered).decode(), None))
        if result.label:
            rows.append(_value_row(task, "shown", "label", _json.encode(result.label).decode(), None))
        if result.export:
            rows.append(_value_row(task, "export", "", _json.encode(result.export).decode(), None))
        if result.store or result.reset:
            document_ = _json.encode({"store": result.store, "reset": result.reset}).decode()
            rows.append(_value_row(task, "store", "", document_, None))
        if result.export or result.store or result.reset:
            with_stores.add(task.attempt_id)
    if rows:
        tx.write_each(UPSERT_VALUES, rows)
    if with_stores:
        tx.write(MARK_STORES, {"ids": sorted(with_stores), "yes": True})
    return with_stores


def _emit_events(tx: Transaction, applied: Sequence[tuple[Task, TaskResult]], now: int) -> None:
    events = [
        (event, Cause(task.attempt_id, task.key, task.map_index))
        for task, result in applied
        if result.outcome == "success"
        for event in result.events
    ]
    if events:
        emit_events(tx, events, now)


def _value_row(task: Task, kind: str, name: str, document: str, length: int | None) -> dict[str, Any]:
    return {
        "task_id": task.id,
        "name": name,
        "attempt_id": task.attempt_id,
        "kind": kind,
        "document": document,
        "length": length,
    }
