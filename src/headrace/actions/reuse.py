"""`isolation = "reuse"`: a process may serve many tries, for every task of an executor."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from headrace.executor import Executor
from headrace.handoff import TaskRequest, TaskResult


class Reusing:
    """An executor that treats tasks which ask for a process of their own as tasks that may share one."""

    def __init__(self, executor: Executor) -> None:
        self._executor = executor
        self.free_slots = executor.free_slots
        self.wake = executor.wake
        self.cancel = executor.cancel
        self.running = executor.running
        self.close = executor.close

    def submit(self, requests: Sequence[TaskRequest]) -> None:
        self._executor.submit([_reusing(request) for request in requests])

    def poll(self, timeout_seconds: float | None) -> list[TaskResult]:
        return self._executor.poll(timeout_seconds)


def _reusing(request: TaskRequest) -> TaskRequest:
    if request.node.isolation != "process":
        return request
    return msgspec.structs.replace(request, node=msgspec.structs.replace(request.node, isolation="reuse"))
