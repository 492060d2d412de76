"""Errands: user code that runs on behalf of a run or a task and is no task itself, such as callbacks.

An errand is a row that is written in the same transaction as the change that caused it, so that none is forgotten and
none is run for a change that was rolled back. An agent takes it under its lease and runs it in a process of its own
with a log and a time limit. If the process or the agent dies, it is run again: at least once, a few times at most.

To add a kind: name it here, with its payload; write it where it is caused, with `Graph.send` in a decision or with
`store.send_errands` in a service; and give every language that shall know it a function for it, in the table of
`runner/python_errand.py`. Nothing in between looks at the kind.

Two kinds are named in definitions, because a workflow asks for them. Payload of `tasks_late`: {"misses": [{"id",
"name", "task", "run_key", "logical_time", "due_at", "missed_at"}, …], "blocking": [{"task", "map_index", "state",
"try_number", "run_key", "logical_time"}, …]}: tasks that were not done in time, of one run or several, and what has
begun in these runs and did not succeed; the errand is about the newest run. Payload of `run_late`: with one miss.
"""

from __future__ import annotations

from typing import Any

from headrace.definition import RUN_LATE, TASKS_LATE, Data

__all__ = ["RUN_ENDED", "RUN_LATE", "TASKS_LATE", "TRY_DIED", "Errand", "errand_id", "errand_key", "is_errand"]

RUN_ENDED = "run_ended"
"""A run ended. Payload: {"state": "failed", "reason": "timed_out" or None}; its task is one that explains the end."""
TRY_DIED = "try_died"
"""A try's process died. Payload: {"ending": "retry" or "failed", "error": a sentence}."""


class Errand(Data, frozen=True, kw_only=True):
    """What is to be done."""

    kind: str
    payload: dict[str, Any] = {}


def errand_key(errand_id: int) -> int:
    """What stands for the id of a task in the request of an errand: executors tell requests apart by numbers only."""
    return -errand_id


def is_errand(task_id: int) -> bool:
    """Whether a request or a result is about an errand."""
    return task_id < 0


def errand_id(task_id: int) -> int:
    """The errand that a request or a result is about."""
    return -task_id
