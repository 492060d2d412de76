"""What an agent expects of a place where tasks run."""

from __future__ import annotations

import signal
from collections.abc import Callable, Sequence
from typing import Protocol

from headrace.handoff import Answer, Ask, Source, TaskRequest, TaskResult

Broker = Callable[[TaskRequest, Ask], Answer]
"""Answers the questions of user code, or raises `Later`. Called inside `poll`, on the thread that polls."""


class Later(Exception):
    """A broker cannot answer now, and may be asked again after so many seconds."""

    def __init__(self, message: str, seconds: float) -> None:
        super().__init__(message)
        self.seconds = seconds


Contents = Callable[[Source], bytes | None]
"""What was kept of a source's revision. Called when a warm parent is started, on the thread that submits or polls."""

Questions = Callable[[Ask], Answer]
"""Answers what a file asks for while it is loaded, when there is no task yet. Called inside `poll`."""


class Executor(Protocol):
    """Runs requests and gives back exactly one result for each, unless it is closed before.

    All methods but `wake` and `halt` belong to one thread.
    """

    def free_slots(self) -> int:
        """How many requests could start at once now."""
        ...

    def submit(self, requests: Sequence[TaskRequest]) -> None:
        """Take requests over. Those beyond the free slots wait for their turn."""
        ...

    def poll(self, timeout_seconds: float | None) -> list[TaskResult]:
        """Block until a result is there, `wake` was called or the time is over; None waits for ever."""
        ...

    def wake(self) -> None:
        """Make the present or the next `poll` return. Any thread may call it; many calls count as one."""
        ...

    def cancel(self, task_id: int, fence: int) -> None:
        """Stop one try: SIGTERM to its process group, SIGKILL after its grace. Its result is `stopped`."""
        ...

    def halt(self, number: signal.Signals) -> int:
        """SIGTERM: have everything that runs end; SIGKILL: kill what was told so. How many tries that were.

        Any thread may call it, whatever the one that polls is waiting for. The result of a try that ends by it is
        `stopped`.
        """
        ...

    def running(self) -> list[tuple[int, int]]:
        """Task id and fence of everything that was submitted and not reported yet."""
        ...

    def waiting(self) -> list[tuple[int, int]]:
        """Those of them that wait for a free slot. When they are cancelled, they have never begun."""
        ...

    def close(self, grace_seconds: float) -> None:
        """Stop everything and let go of all processes. Results that are still out are lost."""
        ...
