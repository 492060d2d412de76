"""Deadlines that have passed: what was not done in time is a miss, with the consequences that its workflow asks for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal, NamedTuple

from headrace.clock import from_micros, iso
from headrace.definition import Deadline
from headrace.handoff import Errand
from headrace.state import Advance, Attempt, State, Task, was_met
from headrace.store.database import Transaction
from headrace.store.errands import NewErrand, send_errands
from headrace.store.results import settle_and_flush, tell_of
from headrace.store.run_graph import RunGraph
from headrace.store.sql import Sql

_NEWEST_ATTEMPT = "(SELECT max(attempt.id) FROM attempt WHERE attempt.run_id = deadline.run_id)"
DUE = Sql(
    f"""
    SELECT id, {_NEWEST_ATTEMPT} FROM deadline WHERE missed_at IS NULL AND due_at <= :now
    ORDER BY due_at LIMIT :limit
    """
)
# Read again once the attempts are locked: whoever was first has left nothing.
STILL_DUE = Sql(
    f"""
    SELECT id, workflow_id, name, task, due_at, {_NEWEST_ATTEMPT} FROM deadline
    WHERE id IN :ids[] AND missed_at IS NULL AND due_at <= :now ORDER BY id [[postgres: FOR UPDATE]]
    """
)
FORGET = Sql("DELETE FROM deadline WHERE id IN :ids[]")
MISS = Sql("UPDATE deadline SET missed_at = :now WHERE id IN :ids[]")
POSTPONE = Sql("UPDATE deadline SET due_at = :due_at WHERE id = :id")
RUNS = Sql(
    """
    SELECT attempt.id, run.key, run.logical_at FROM attempt JOIN run ON run.id = attempt.run_id
    WHERE attempt.id IN :ids[]
    """
)
BLOCKING = Sql(
    """
    SELECT attempt_id, key, map_index, state, try_number FROM task
    WHERE attempt_id IN :ids[] AND NOT is_superseded AND parent_id IS NOT NULL AND kind <> 'group'
      AND NOT (kind = 'mapped' AND children > 0) AND state NOT IN ('none', 'success', 'removed')
    ORDER BY attempt_id, id
    """
)
NOTE_SENT = Sql(
    """
    UPDATE deadline SET is_told = true, is_mailed = (is_mailed OR :is_mailed)
    WHERE id IN :ids[] AND missed_at IS NOT NULL AND workflow_id IN (SELECT workflow_id FROM run WHERE id = :run_id)
    """
)

Verdict = Literal["met", "missed", "waits"]


class Due(NamedTuple):
    """A deadline that has passed."""

    id: int
    workflow_id: int
    name: str
    task: str
    due_at: int
    attempt_id: int


class _Late(NamedTuple):
    due: Due
    deadline: Deadline
    attempt: Attempt


def serve_due_deadlines(tx: Transaction, now: int, limit: int = 200, *, checks_tasks: bool = True) -> int:
    """Record what was not done in time, with all that follows from it; each miss once, whoever else serves.

    Without `checks_tasks` only whole runs have deadlines. Returns how many are no longer ahead of anybody.
    """
    found = tx.run(DUE, {"now": now, "limit": limit})
    if not found:
        return 0
    graph = RunGraph(tx, now)
    graph.lock(row[1] for row in found if row[1] is not None)
    due = [Due(*row) for row in tx.run(STILL_DUE, {"ids": [row[0] for row in found], "now": now})]
    advance = Advance(graph)
    late, forgotten = _sort_out(tx, graph, due, checks_tasks=checks_tasks)
    for one in late:
        if one.deadline.grows:
            advance.add_to_run(one.attempt, one.deadline.grows)
    if late:
        tx.write(MISS, {"ids": [one.due.id for one in late], "now": now})
    committed = settle_and_flush(advance, graph)
    send_errands(tx, _errands(tx, late, now), now)
    tell_of(tx, graph, [committed])
    return len(late) + len(forgotten)


def note_sent(tx: Transaction, run_id: int, ids: Sequence[int], *, is_mailed: bool) -> None:
    """Somebody was told of misses of the run's workflow."""
    tx.change(NOTE_SENT, {"run_id": run_id, "ids": list(ids), "is_mailed": is_mailed})


def _sort_out(
    tx: Transaction, graph: RunGraph, due: Sequence[Due], *, checks_tasks: bool
) -> tuple[list[_Late], list[int]]:
    """Those that were missed, and the ids of those that are forgotten; others wait until a miss can do something."""
    late: list[_Late] = []
    forgotten: list[int] = []
    for one in due:
        attempt = graph.known_attempt(one.attempt_id)
        if attempt is None:
            continue  # somebody began another attempt a moment ago; the next look is about that one
        deadline = _definition(graph, one)
        if deadline is None or (deadline.task and not checks_tasks):
            forgotten.append(one.id)
            continue
        verdict, again_at = _verdict(graph, one, deadline, attempt)
        if verdict == "missed":
            late.append(_Late(one, deadline, attempt))
        elif verdict == "met":
            forgotten.append(one.id)
        else:
            tx.write(POSTPONE, {"id": one.id, "due_at": again_at})
    if forgotten:
        tx.write(FORGET, {"ids": forgotten})
    return late, forgotten


def _definition(graph: RunGraph, due: Due) -> Deadline | None:
    """None: the workflow has changed and the run was tried again since."""
    workflow = graph.workflow(due.attempt_id)
    return next((one for one in workflow.deadlines if one.name == due.name and one.task == due.task), None)


def _verdict(graph: RunGraph, due: Due, deadline: Deadline, attempt: Attempt) -> tuple[Verdict, int | None]:
    """With when to look again, if it waits; None: when the run begins."""
    done: Attempt | Task | None = attempt
    if deadline.task and attempt.root_id is not None:
        done = next(iter(graph.by_key(attempt.id, [deadline.task])), None)
    if done is None or was_met(deadline, due.due_at, done):
        return "met", None
    if not deadline.grows:
        return "missed", None
    if attempt.state not in ("queued", "running") or attempt.is_cancel_requested:
        return "met", None
    if attempt.root_id is None:
        return "waits", None
    (root,) = graph.tasks([attempt.root_id])
    return ("waits", root.due_at) if root.state is State.UP_FOR_RETRY else ("missed", None)


def _errands(tx: Transaction, late: Sequence[_Late], now: int) -> list[NewErrand]:
    """One for each run that is late, and one for all late tasks of a workflow."""
    groups: dict[tuple[str, int, int], list[_Late]] = {}
    for one in late:
        if one.deadline.errand:
            own = 0 if one.deadline.task else one.due.id
            groups.setdefault((one.deadline.errand, one.due.workflow_id, own), []).append(one)
    if not groups:
        return []
    runs = _runs(tx, {one.attempt.id for one in late})
    errands = []
    for (kind, _, own), members in groups.items():
        attempts = {one.attempt.id for one in members}
        payload = {
            "misses": [_told(one, runs[one.attempt.id], now) for one in members],
            "blocking": [] if own else _blocking(tx, attempts, runs),
        }
        errands.append(NewErrand(max(attempts), Errand(kind=kind, payload=payload)))
    return errands


def _runs(tx: Transaction, attempt_ids: Iterable[int]) -> dict[int, dict[str, Any]]:
    rows = tx.run(RUNS, {"ids": sorted(attempt_ids)})
    return {row[0]: {"run_key": row[1], "logical_time": _iso(row[2])} for row in rows}


def _told(late: _Late, run: dict[str, Any], now: int) -> dict[str, Any]:
    due = late.due
    about = {"id": due.id, "name": due.name, "task": due.task, "due_at": _iso(due.due_at), "missed_at": _iso(now)}
    return {**about, **run}


def _blocking(tx: Transaction, attempt_ids: Iterable[int], runs: dict[int, dict[str, Any]]) -> list[dict[str, Any]]:
    return [
        {"task": key, "map_index": map_index, "state": state, "try_number": try_number, **runs[attempt_id]}
        for attempt_id, key, map_index, state, try_number in tx.run(BLOCKING, {"ids": sorted(attempt_ids)})
    ]


def _iso(micros: int | None) -> str | None:
    return None if micros is None else iso(from_micros(micros))
