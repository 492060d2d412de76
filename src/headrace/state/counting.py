"""The counters on a task: what it has seen of its upstream tasks and of its children.

They are kept up to date one ended task at a time; where the past changes (a clear, a new generation, another number of
instances) they are counted anew.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from headrace.state.graph import Graph, Link
from headrace.state.lockstep import are_in_step, lockstep_of
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


def forget_upstream(task: Task) -> None:
    """As if it waited for nobody."""
    task.expected = task.succeeded = task.skipped = task.failed = task.upstream_failed = task.removed = 0
    task.setups = task.setups_succeeded = task.setups_skipped = 0


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
    waiting = [task for task in tasks if _counts(graph, task) and not task.is_superseded]
    links: dict[int, list[Link]] = {task.origin_id: [] for task in waiting}
    for link in graph.upstream(list(links)) if links else ():
        links[link.near_id].append(link)
    instances = _instances(graph, {link.far.id for near in links.values() for link in near if link.far.is_expanded})
    excluded = []
    for task in waiting:
        ends = [(link, _ends(graph, task, link, instances)) for link in links[task.origin_id]]
        _count_one(task, ends)
        graph.touch(task)
        if any(_excludes(end, task) for _, some in ends for end in some if _decides_about(graph, end, task)):
            excluded.append(task)
    return excluded


def _counts(graph: Graph, task: Task) -> bool:
    return not task.is_instance or lockstep_of(graph, task) != ""


def _instances(graph: Graph, mapped_ids: set[int]) -> dict[int, list[Task]]:
    instances: dict[int, list[Task]] = {}
    for instance in graph.children(mapped_ids) if mapped_ids else ():
        if instance.state is not State.REMOVED:
            instances.setdefault(instance.origin_id, []).append(instance)
    return instances


def _ends(graph: Graph, task: Task, link: Link, instances: dict[int, list[Task]]) -> list[Task]:
    """What a task waits for at the other end of a link: one task, or instances that stand for it."""
    far = link.far
    ends = instances.get(far.id)
    if ends is None:
        return [far]
    if task.is_instance and are_in_step(graph, task, far):
        return [end for end in ends if end.map_index == task.map_index]
    return ends


def _count_one(task: Task, links: Sequence[tuple[Link, list[Task]]]) -> None:
    forget_upstream(task)
    for link, ends in links:
        task.expected += len(ends)
        task.setups += len(ends) * link.is_setup
        for end in ends:
            if end.state in FINISHED:
                credit(task, end.state, is_setup=link.is_setup)


def _decides_about(graph: Graph, end: Task, task: Task) -> bool:
    """A branching task decides about whoever waits for it, an instance of one only about its own index."""
    return not end.is_instance or (task.is_instance and are_in_step(graph, end, task))


def _excludes(branch: Task, task: Task) -> bool:
    """Whether a finished branching task remembers that this one is not to run."""
    if branch.decision is None or branch.state is not State.SUCCESS:
        return False
    decision = msgspec.json.decode(branch.decision)
    followed: list[str] | None = decision.get("followed")
    return task.key not in followed if followed is not None else task.key in decision.get("skipped", ())
