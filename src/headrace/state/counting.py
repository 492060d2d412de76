"""The counters on a task: what it has seen of its upstream tasks and of its children.

They are kept up to date one ended task at a time; where the past changes (a clear, a new generation, another number of
instances) they are counted anew.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from headrace.state.graph import Graph, Link
from headrace.state.rules import Tally
from headrace.state.task import FAILURES, FINISHED, State, Task


def tally_of(task: Task) -> Tally:
    """What a task has seen of its upstream tasks."""
    return Tally(
        task.expected,
        task.succeeded,
        task.skipped,
        task.failed,
        task.upstream_failed,
        task.removed,
        task.setups,
        task.setups_succeeded,
        task.setups_skipped,
        task.map_index,
    )


def credit(task: Task, state: State, *, is_setup: bool) -> None:
    """An upstream task ended in this state."""
    if state is State.SUCCESS:
        task.succeeded += 1
        task.setups_succeeded += is_setup
    elif state is State.SKIPPED:
        task.skipped += 1
        task.setups_skipped += is_setup
    elif state is State.UPSTREAM_FAILED:
        task.upstream_failed += 1
    elif state is State.REMOVED:
        task.removed += 1
    else:
        task.failed += 1


def credit_parent(parent: Task, child: Task) -> None:
    """A child ended."""
    parent.children_open -= 1
    if child.state in FAILURES and child.decides:
        parent.children_failed += 1
        if not parent.is_failing:
            # While handlers run, the error that they were called for stays the parent's.
            parent.error = child.error or parent.error
    elif child.state is State.SKIPPED:
        parent.children_skipped += 1


def count_children(graph: Graph, parents: Sequence[Task]) -> None:
    """Count the children of these anew. A removed instance is as if it had never been."""
    by_parent: dict[int, list[Task]] = {parent.id: [] for parent in parents}
    for child in graph.children(list(by_parent)) if by_parent else ():
        if child.state is not State.REMOVED and child.parent_id is not None:
            by_parent[child.parent_id].append(child)
    for parent in parents:
        children = by_parent[parent.id]
        parent.children = len(children)
        parent.children_open = sum(child.state not in FINISHED for child in children)
        parent.children_failed = sum(child.state in FAILURES and child.decides for child in children)
        parent.children_skipped = sum(child.state is State.SKIPPED for child in children)
        graph.touch(parent)


def count_upstream(graph: Graph, tasks: Iterable[Task]) -> list[Task]:
    """Count anew what these have seen of their upstream tasks; returns those that a branch has decided against."""
    waiting = {task.id: task for task in tasks if not task.is_instance and not task.is_superseded}
    links: dict[int, list[Link]] = {task_id: [] for task_id in waiting}
    for link in graph.upstream(list(waiting)) if waiting else ():
        links[link.near_id].append(link)
    instances = _instances(graph, {link.far.id for near in links.values() for link in near if link.far.is_expanded})
    for task_id, task in waiting.items():
        _count_one(task, links[task_id], instances)
        graph.touch(task)
    return [task for task_id, task in waiting.items() if any(_excludes(link.far, task) for link in links[task_id])]


def _instances(graph: Graph, mapped_ids: set[int]) -> dict[int, list[Task]]:
    instances: dict[int, list[Task]] = {}
    for instance in graph.children(mapped_ids) if mapped_ids else ():
        if instance.state is not State.REMOVED:
            instances.setdefault(instance.origin_id, []).append(instance)
    return instances


def _count_one(task: Task, links: Sequence[Link], instances: dict[int, list[Task]]) -> None:
    task.expected = task.succeeded = task.skipped = task.failed = task.upstream_failed = task.removed = 0
    task.setups = task.setups_succeeded = task.setups_skipped = 0
    for link in links:
        ends = instances.get(link.far.id, [link.far])
        task.expected += len(ends)
        task.setups += len(ends) * link.is_setup
        for end in ends:
            if end.state in FINISHED:
                credit(task, end.state, is_setup=link.is_setup)


def _excludes(branch: Task, task: Task) -> bool:
    """Whether a finished branching task remembers that this one is not to run."""
    if branch.decision is None or branch.state is not State.SUCCESS:
        return False
    decision = msgspec.json.decode(branch.decision)
    followed: list[str] | None = decision.get("followed")
    return task.key not in followed if followed is not None else task.key in decision.get("skipped", ())
