"""Tasks as JSON shows them."""

from __future__ import annotations

from collections.abc import Iterable

from headrace.cli.printing import instant, seconds
from headrace.store import TaskRow


def describe_tasks(tasks: Iterable[TaskRow]) -> dict[str, dict[str, object]]:
    """By name, in the order of the file."""
    return {task.name: describe_task(task) for task in tasks}


def describe_task(task: TaskRow) -> dict[str, object]:
    return {
        "state": task.state,
        "tries": task.try_number,
        "started_at": instant(task.started_at),
        "ended_at": instant(task.ended_at),
        "duration_seconds": seconds(task.started_at, task.ended_at),
        "error": None if task.error is None else task.error.message,
    }
