"""Runs requests in the calling process: for tests, for debugging, and for tasks that run no user code."""

from __future__ import annotations

import io
import logging
import signal
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import ExitStack, redirect_stderr, redirect_stdout
from threading import Event
from typing import Any

import msgspec

from headrace.definition import NOOP
from headrace.executor.contract import Broker
from headrace.executor.questions import answer
from headrace.executor.shown import without_secrets
from headrace.executor.verdicts import not_begun, not_started, succeeded
from headrace.handoff import (
    Ask,
    Channel,
    ChannelError,
    LineFormatter,
    TaskRequest,
    TaskResult,
    failed,
    failure_of,
    reusing,
    value_of,
)
from headrace.logs import LogFile, Masker

_MANY_SLOTS = 1000

Run = Callable[[TaskRequest, Channel], TaskResult]


class InlineExecutor:
    """`poll` runs what was submitted, one after the other. Without `run`, only tasks that do nothing succeed."""

    def __init__(self, broker: Broker, run: Run | None = None) -> None:
        self._broker = broker
        self._run = run
        self._waiting: deque[TaskRequest] = deque()
        self._results: list[TaskResult] = []
        self._woken = Event()

    def free_slots(self) -> int:
        return _MANY_SLOTS

    def submit(self, requests: Sequence[TaskRequest]) -> None:
        self._waiting += requests

    def poll(self, timeout_seconds: float | None) -> list[TaskResult]:
        while self._waiting:
            self._results.append(self._result_of(self._waiting.popleft()))
        if not self._results:
            self._woken.wait(timeout_seconds)
        self._woken.clear()
        results, self._results = self._results, []
        return results

    def wake(self) -> None:
        self._woken.set()

    def cancel(self, task_id: int, fence: int) -> None:
        for request in [found for found in self._waiting if (found.task_id, found.fence) == (task_id, fence)]:
            self._waiting.remove(request)
            self._results.append(not_begun(request))

    def halt(self, number: signal.Signals) -> int:
        """There is no process that could be stopped."""
        return 0

    def running(self) -> list[tuple[int, int]]:
        unreported: list[TaskRequest | TaskResult] = [*self._waiting, *self._results]
        return [(item.task_id, item.fence) for item in unreported]

    def waiting(self) -> list[tuple[int, int]]:
        """None: each poll runs everything."""
        return []

    def close(self, grace_seconds: float) -> None:
        self._waiting.clear()
        self._results.clear()

    def _result_of(self, request: TaskRequest) -> TaskResult:
        if request.node.operator == NOOP:
            return succeeded(request)
        if self._run is None:
            return not_started(request, f"operator `{request.node.operator}` needs a process of its own")
        return self._run_logged(request, self._run)

    def _run_logged(self, request: TaskRequest, run: Run) -> TaskResult:
        masker = Masker()
        channel = _DirectChannel(self._broker, request, masker)
        with ExitStack() as stack:
            file = LogFile(request.log_path, masker)
            stack.callback(file.close)
            output = stack.enter_context(_Output(file))
            stack.enter_context(redirect_stdout(output))
            stack.enter_context(redirect_stderr(output))
            stack.enter_context(_LoggingTo(output))
            try:
                # This process goes on, so the try must leave it as it was.
                result = _as_sent(request, run(reusing(request), channel))
            except (Exception, SystemExit) as error:
                result = failure_of(request, error)
            return without_secrets(result, masker)


def _as_sent(request: TaskRequest, result: TaskResult) -> TaskResult:
    """The result as it would arrive from another process."""
    try:
        return msgspec.json.decode(msgspec.json.encode(result), type=TaskResult)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        message = f"task `{request.key}` gave a result that is not made of JSON values: {error}"
        return failed(request, "ResultError", message)


class _Output(io.TextIOBase):
    """Text that is printed goes to the try's log."""

    def __init__(self, file: LogFile) -> None:
        self._file = file

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        self._file.write(text.encode(errors="backslashreplace"))
        return len(text)


class _LoggingTo:
    """Log lines of user code go to the try's log, whatever else listens to them."""

    def __init__(self, output: io.TextIOBase) -> None:
        self._handler = logging.StreamHandler(output)
        self._handler.setFormatter(LineFormatter())

    def __enter__(self) -> None:
        root = logging.getLogger()
        self._level = root.level
        root.addHandler(self._handler)
        root.setLevel(min(root.level, logging.INFO))

    def __exit__(self, *_: object) -> None:
        root = logging.getLogger()
        root.removeHandler(self._handler)
        root.setLevel(self._level)


class _DirectChannel:
    """Asks the broker without a process in between, but with everything turned into JSON and back."""

    def __init__(self, broker: Broker, request: TaskRequest, masker: Masker) -> None:
        self._broker = broker
        self._request = request
        self._masker = masker
        self._asked = 0

    def ask(self, verb: str, **args: Any) -> Any:
        self._asked += 1
        try:
            ask = msgspec.json.decode(msgspec.json.encode(Ask(id=self._asked, verb=verb, args=args)), type=Ask)
        except (TypeError, ValueError, OverflowError, RecursionError) as error:
            raise ChannelError(f"could not ask for `{verb}`: its arguments must be JSON values: {error}") from error
        return value_of(answer(self._broker, self._request, ask, self._masker), verb)
