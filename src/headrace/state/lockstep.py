"""Mapped tasks in lockstep: an instance waits for the instances of its own index, and for all of everybody else.

Instances of other mapped tasks have no counters: they open together with the task that stands for them. Those of a
mapped task in lockstep open one by one, so each counts for itself what it waits for.
"""

from __future__ import annotations

from collections.abc import Iterable

from headrace.state.graph import Graph, Link
from headrace.state.task import FINISHED, State, Task


def lockstep_of(graph: Graph, task: Task) -> str:
    """The word that it shares with those it keeps pace with; empty for most tasks."""
    return graph.node(task).lockstep if task.kind == "mapped" or task.is_instance else ""


def are_in_step(graph: Graph, one: Task, other: Task) -> bool:
    """Whether two mapped tasks, or instances of them, meet index by index."""
    word = lockstep_of(graph, one)
    return word != "" and word == lockstep_of(graph, other)


def counting_instances(graph: Graph, task: Task) -> list[Task]:
    """The instances of a mapped task that count for themselves what they wait for."""
    if not task.is_expanded or not lockstep_of(graph, task):
        return []
    return [one for one in graph.children([task.id]) if one.is_instance and one.state is not State.REMOVED]


def instances_told(graph: Graph, ended: Task, link: Link) -> list[Task]:
    """Which instances of the task at the link's other end are told that this task has ended."""
    far = link.far
    if not far.is_expanded or not lockstep_of(graph, far):
        return []
    if not ended.is_instance or not are_in_step(graph, ended, far):
        return counting_instances(graph, far)
    return [one for one in graph.instances([far.id], [ended.map_index]) if one.state is not State.REMOVED]


def with_counting_instances(graph: Graph, tasks: Iterable[Task]) -> list[Task]:
    """These tasks and those instances of theirs that count for themselves, each once."""
    found = {task.id: task for task in tasks}
    for task in list(found.values()):
        found.update((one.id, one) for one in counting_instances(graph, task))
    return list(found.values())


def waiting_behind(graph: Graph, task: Task) -> list[Task]:
    """Tasks in lockstep with a finished one, at any distance behind it, that are not expanded.

    What they are mapped over may be what ended just now: only the first of them wait for it directly, and those may
    have finished long ago if others were cleared without them.
    """
    if task.kind != "mapped" or task.state not in FINISHED or not lockstep_of(graph, task):
        return []
    seen = {task.id: task}
    level = [task]
    while level:
        links = graph.downstream([one.id for one in level])
        level = [link.far for link in links if link.far.id not in seen and are_in_step(graph, task, link.far)]
        seen.update((one.id, one) for one in level)
    return [one for one in seen.values() if one.state is State.NONE]
