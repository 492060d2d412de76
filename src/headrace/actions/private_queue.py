"""Keeps the tasks of a local run to the process that started it.

Several `headrace run` share one store. Each gives its tasks a queue of its own, so that no process runs another one's
code in its own environment, and none has to wait for the other's tasks when its own run has ended.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from headrace.definition import Node, Workflow
from headrace.executor import Executor
from headrace.handoff import TaskRequest, TaskResult


def in_queue(workflow: Workflow, queue: str) -> Workflow:
    """The workflow with every task in this queue; nothing starts it but the one who asked for it."""
    return msgspec.structs.replace(
        workflow,
        nodes=_nodes(workflow.nodes, queue),
        schedule=None,
        is_paused_at_creation=False,
        unique_logical_time=False,
    )


class PrivateQueue:
    """An executor whose tasks add further tasks to the same queue only."""

    def __init__(self, executor: Executor, queue: str) -> None:
        self._executor = executor
        self._queue = queue

    def free_slots(self) -> int:
        return self._executor.free_slots()

    def submit(self, requests: Sequence[TaskRequest]) -> None:
        self._executor.submit(requests)

    def poll(self, timeout_seconds: float | None) -> list[TaskResult]:
        return [self._redirected(result) for result in self._executor.poll(timeout_seconds)]

    def wake(self) -> None:
        self._executor.wake()

    def cancel(self, task_id: int, fence: int) -> None:
        self._executor.cancel(task_id, fence)

    def running(self) -> list[tuple[int, int]]:
        return self._executor.running()

    def close(self, grace_seconds: float) -> None:
        self._executor.close(grace_seconds)

    def _redirected(self, result: TaskResult) -> TaskResult:
        if not result.growth:
            return result
        return msgspec.structs.replace(result, growth=_nodes(result.growth, self._queue))


def _nodes(nodes: Sequence[Node], queue: str) -> tuple[Node, ...]:
    return tuple(
        msgspec.structs.replace(node, queue=queue, on_failure=_nodes(node.on_failure, queue)) for node in nodes
    )
