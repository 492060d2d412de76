"""What a task needs at a distance: tasks further up that must have succeeded, whatever its rule says about its own."""

from __future__ import annotations

from headrace.state.graph import Graph
from headrace.state.lockstep import are_in_step
from headrace.state.rules import Verdict
from headrace.state.task import FAILURES, State, Task


def verdict_about_needs(graph: Graph, task: Task) -> Verdict:
    """One that failed or was skipped decides at once; otherwise all have to succeed."""
    keys = graph.node(task).needs
    if not keys:
        return Verdict.RUN
    states = {end.state for needed in graph.by_key(task.attempt_id, keys) for end in _ends(graph, task, needed)}
    if states & FAILURES:
        return Verdict.UPSTREAM_FAILED
    if State.SKIPPED in states:
        return Verdict.SKIP
    return Verdict.RUN if states <= {State.SUCCESS, State.REMOVED} else Verdict.WAIT


def those_in_need(graph: Graph, ended: Task) -> list[Task]:
    """Tasks that wait and need the one that ended: no edge tells them."""
    if not graph.node(ended).is_needed:
        return []
    waiting = (one for one in graph.unfinished(ended.attempt_id) if one.state is State.NONE)
    return [one for one in waiting if ended.key in graph.node(one).needs]


def _ends(graph: Graph, task: Task, needed: Task) -> list[Task]:
    if not needed.is_expanded:
        return [needed]
    if task.is_instance and are_in_step(graph, task, needed):
        return graph.instances([needed.id], [task.map_index])
    return [one for one in graph.children([needed.id]) if one.is_instance]
