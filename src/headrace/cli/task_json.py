"""Tasks as JSON shows them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from headrace.cli.printing import instant, seconds
from headrace.definition import Node
from headrace.store import TaskRow


def describe_tasks(
    tasks: Iterable[TaskRow], nodes: Mapping[str, Node] | None = None, labels: Mapping[int, str] | None = None
) -> dict[str, dict[str, object]]:
    """By name, in the order of the file; with their nodes also what they tell their executor.

    `labels` are the names of mapped instances for people, by id.
    """
    return {
        task.name: describe_task(task)
        | _placing(task, (nodes or {}).get(task.key))
        | ({"label": labels[task.id]} if labels and task.id in labels else {})
        for task in tasks
    }


def _placing(task: TaskRow, node: Node | None) -> dict[str, object]:
    """Where a task runs, if it is particular about that."""
    placing: dict[str, object] = {"queue": task.queue} if task.queue not in ("default", "inline") else {}
    if node is not None and node.executor:
        placing["executor"] = node.executor
    if node is not None and node.executor_options:
        placing["executor_config"] = node.executor_options
    return placing


def describe_task(task: TaskRow) -> dict[str, object]:
    return {
        "state": task.state,
        "tries": task.begun_tries,
        "started_at": instant(task.started_at),
        "ended_at": instant(task.ended_at),
        "duration_seconds": seconds(task.started_at, task.ended_at),
        "error": None if task.error is None else task.error.message,
    }
