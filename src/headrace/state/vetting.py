"""Results come from user code, so nothing about them is certain."""

from __future__ import annotations

from headrace.definition import check_nodes
from headrace.errors import DefinitionError
from headrace.handoff import TaskError, TaskResult
from headrace.state.graph import Graph
from headrace.state.task import Task


def vetted(graph: Graph, task: Task, result: TaskResult) -> TaskResult:
    """The result, or a failure in its place if it wants what cannot be."""
    if result.outcome == "deferred" and result.deferral is None:
        problem: str | None = "wants to wait for a trigger, but does not say for which"
    elif result.growth:
        problem = _problem(graph, task, result)
    else:
        return result
    if problem is None:
        return result
    error = TaskError(type="DefinitionError", message=problem)
    return TaskResult(task_id=result.task_id, fence=result.fence, outcome="failed", error=error, is_retryable=False)


def _problem(graph: Graph, task: Task, result: TaskResult) -> str | None:
    try:
        check_nodes(result.growth, f"what task `{task.name}` wants to add", is_fragment=True)
    except DefinitionError as error:
        return str(error)
    present = graph.by_key(task.attempt_id, [node.key for node in result.growth])
    # What grows under an instance has that instance's index, so only the same index is taken.
    taken = sorted(other.key for other in present if other.map_index == task.map_index)
    return f"wants to add `{taken[0]}`, but the run has such a task already" if taken else None
