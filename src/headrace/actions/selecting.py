"""Which tasks somebody means: the named ones, what is before and after them, and the same in other runs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from headrace.actions.finding import find_task
from headrace.store import RunRow, TaskRow, Transaction, list_edges, list_tasks, runs_around

FAILURES = ("failed", "upstream_failed", "canceled")
_RUNNING = ("queued", "running", "restarting")


class Selection(NamedTuple):
    """How far a choice of tasks reaches, and which of them are left."""

    upstream: bool = False
    downstream: bool = False
    past: bool = False
    future: bool = False
    only_failed: bool = False
    only_running: bool = False


class Chosen(NamedTuple):
    """The chosen tasks of one run."""

    run: RunRow
    tasks: list[TaskRow]


def choose(tx: Transaction, run: RunRow, names: Sequence[str], selection: Selection) -> list[Chosen]:
    """The named tasks of a run, or all, as far as the selection reaches; the run itself comes first."""
    every = list_tasks(tx, run.attempt_id)
    named = _named(tx, run, every, names)
    chosen = [Chosen(run, _reach(tx, run, every, named, selection))]
    for other in runs_around(tx, run, past=selection.past, future=selection.future):
        every = list_tasks(tx, other.attempt_id)
        same = [task for task in every if task.name in {one.name for one in named}]
        chosen.append(Chosen(other, _reach(tx, other, every, same, selection)))
    return [one for one in chosen if one.tasks or one.run is run]


def _named(tx: Transaction, run: RunRow, every: Sequence[TaskRow], names: Sequence[str]) -> list[TaskRow]:
    if names:
        by_id = {task.id: task for task in (find_task(tx, run, name) for name in names)}
        return [by_id[task_id] for task_id in sorted(by_id)]
    return [task for task in every if task.parent_id is not None and task.state != "removed"]


def _reach(
    tx: Transaction, run: RunRow, every: Sequence[TaskRow], named: Sequence[TaskRow], selection: Selection
) -> list[TaskRow]:
    chosen = list(named)
    if selection.only_failed:
        chosen = _failed(chosen, every)
    if selection.only_running:
        chosen = [task for task in chosen if task.state in _RUNNING]
    edges = list_edges(tx, run.attempt_id) if selection.upstream or selection.downstream else []
    found = {task.id for task in chosen}
    if selection.downstream:
        found |= connected(chosen, every, edges)
    if selection.upstream:
        found |= connected(chosen, every, [(after, before) for before, after in edges])
    return [task for task in every if task.id in found]


def _failed(chosen: Iterable[TaskRow], every: Sequence[TaskRow]) -> list[TaskRow]:
    """What did not succeed by itself: a group that failed because of a task in it opens again with that task."""
    with_failed_children = {task.parent_id for task in every if task.state in FAILURES}
    return [task for task in chosen if task.state in FAILURES and task.id not in with_failed_children]


def with_downstream(
    chosen: Sequence[TaskRow], every: Sequence[TaskRow], edges: Iterable[tuple[int, int]]
) -> list[TaskRow]:
    """The chosen tasks and everything that waits for them, directly or not, in the order of the file."""
    found = connected(chosen, every, edges)
    return [task for task in every if task.id in found]


def connected(chosen: Sequence[TaskRow], every: Sequence[TaskRow], edges: Iterable[tuple[int, int]]) -> set[int]:
    """Ids of everything that edges lead to from the chosen tasks, directly or not, or from a group that they are in."""
    by_id = {task.id: task for task in every}
    following: dict[int, list[int]] = {}
    for near_id, far_id in edges:
        following.setdefault(near_id, []).append(far_id)
    found = {task.id for task in chosen}
    waiting = list(found)
    while waiting:
        for near_id in _self_and_groups(by_id[waiting.pop()], by_id):
            fresh = [task_id for task_id in following.get(near_id, ()) if task_id in by_id and task_id not in found]
            found.update(fresh)
            waiting += fresh
    return found


def _self_and_groups(task: TaskRow, by_id: dict[int, TaskRow]) -> list[int]:
    ids = [task.origin_id]
    parent = by_id.get(task.parent_id or 0)
    while parent is not None and parent.parent_id is not None:
        ids.append(parent.id)
        parent = by_id.get(parent.parent_id)
    return ids
