"""Give tasks of a run a new series of tries."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from headrace.actions.clear_marked import clear_marked
from headrace.actions.finding import find_run, find_task
from headrace.clock import Clock, to_micros
from headrace.errors import StateError
from headrace.store import RunRow, Store, TaskRow, Transaction, clear_tasks, get_run, list_edges, list_tasks

_FAILURES = ("failed", "upstream_failed", "canceled")


class Cleared(NamedTuple):
    run: RunRow
    tasks: list[str]


def clear(
    store: Store,
    clock: Clock,
    name: str,
    tasks: Sequence[str] = (),
    *,
    with_downstream: bool = False,
    only_failed: bool = False,
) -> Cleared:
    """Clear the named tasks of a run, or all; with everything after them; or only what did not succeed."""

    def work(tx: Transaction) -> Cleared:
        run = find_run(tx, name)
        every = list_tasks(tx, run.attempt_id)
        chosen = _chosen(tx, run, every, tasks)
        if only_failed:
            chosen = _failed(chosen, every)
        if with_downstream:
            chosen = _with_downstream(chosen, every, list_edges(tx, run.attempt_id))
        if not chosen:
            raise StateError(f"run {run.id} of `{run.workflow}` has no {'failed ' if only_failed else ''}task to clear")
        clear_tasks(tx, run.attempt_id, [task.id for task in chosen], to_micros(clock.now()))
        clear_marked(tx, run, chosen, to_micros(clock.now()), _with_downstream)
        return Cleared(get_run(tx, run.id) or run, [task.name for task in chosen])

    return store.transact(work)


def _chosen(tx: Transaction, run: RunRow, every: Sequence[TaskRow], names: Sequence[str]) -> list[TaskRow]:
    if names:
        by_id = {task.id: task for task in (find_task(tx, run, name) for name in names)}
        return [by_id[task_id] for task_id in sorted(by_id)]
    return [task for task in every if task.parent_id is not None and task.state != "removed"]


def _failed(chosen: Iterable[TaskRow], every: Sequence[TaskRow]) -> list[TaskRow]:
    """What did not succeed by itself: a group that failed because of a task in it opens again with that task."""
    with_failed_children = {task.parent_id for task in every if task.state in _FAILURES}
    return [task for task in chosen if task.state in _FAILURES and task.id not in with_failed_children]


def _with_downstream(
    chosen: Sequence[TaskRow], every: Sequence[TaskRow], edges: Iterable[tuple[int, int]]
) -> list[TaskRow]:
    """Everything that waits for the chosen tasks, directly or not, or for a group that they are in."""
    by_id = {task.id: task for task in every}
    following: dict[int, list[int]] = {}
    for upstream_id, downstream_id in edges:
        following.setdefault(upstream_id, []).append(downstream_id)
    found = {task.id for task in chosen}
    waiting = list(found)
    while waiting:
        for near_id in _self_and_groups(by_id[waiting.pop()], by_id):
            fresh = [task_id for task_id in following.get(near_id, ()) if task_id in by_id and task_id not in found]
            found.update(fresh)
            waiting += fresh
    return [task for task in every if task.id in found]


def _self_and_groups(task: TaskRow, by_id: dict[int, TaskRow]) -> list[int]:
    ids = [task.origin_id]
    parent = by_id.get(task.parent_id or 0)
    while parent is not None and parent.parent_id is not None:
        ids.append(parent.id)
        parent = by_id.get(parent.parent_id)
    return ids
