"""Results for tries that could not give one themselves."""

from __future__ import annotations

import signal
from collections.abc import Callable

import msgspec

from headrace.handoff import TaskError, TaskRequest, TaskResult, failed, failure_line

Verdict = Callable[[TaskRequest], TaskResult]

_MEMORY_HINT = "hint: often the machine ran out of memory"


def stopped(request: TaskRequest) -> TaskResult:
    """The try was stopped because the agent asked for it."""
    return TaskResult(task_id=request.task_id, fence=request.fence, outcome="stopped")


def not_begun(request: TaskRequest) -> TaskResult:
    """Nothing has happened for the request yet, and nothing will."""
    return TaskResult(task_id=request.task_id, fence=request.fence, outcome="stopped", has_begun=False)


def succeeded(request: TaskRequest) -> TaskResult:
    """The task has nothing to do."""
    return TaskResult(task_id=request.task_id, fence=request.fence, outcome="success")


def died(request: TaskRequest, code: int | None, seconds: float) -> TaskResult:
    """The process ended without a result; `code` is negative for a signal, None if nobody saw how it ended."""
    name = f"task `{request.key}` (try {request.try_number})"
    if code is None:
        message = f"{name} was killed after {seconds:.0f} s: the warm process that it was forked from died"
    elif code < 0:
        message = f"{name} was killed by signal {-code} after {seconds:.0f} s"
    else:
        message = f"{name} left with exit code {code} after {seconds:.0f} s, without a result"
    if code == -signal.SIGKILL:
        message = f"{message}\n{_MEMORY_HINT}"
    return _without_a_word(failed(request, "ProcessDied", message))


def timed_out(request: TaskRequest) -> TaskResult:
    """The try ran longer than it may, and did not end by itself."""
    limit = request.node.timeout_seconds
    message = f"task `{request.key}` (try {request.try_number}) ran longer than {limit} s"
    return _without_a_word(failed(request, "TaskTimeout", message))


def not_loaded(request: TaskRequest, message: str, detail: str) -> TaskResult:
    """The user's file could not be loaded."""
    return failed(request, "LoadError", message, detail)


def not_started(request: TaskRequest, message: str) -> TaskResult:
    """There was no process for the try."""
    message = f"task `{request.key}` (try {request.try_number}) did not start: {message}"
    return _without_a_word(failed(request, "ProcessError", message))


def oversize(request: TaskRequest, limit_bytes: int) -> TaskResult:
    """The process sent more than it may."""
    message = f"task `{request.key}` (try {request.try_number}) sent a message of more than {limit_bytes} bytes"
    return _without_a_word(failed(request, "ResultError", message))


def unrecorded(result: TaskResult, error: Exception) -> TaskResult:
    """What the try has left cannot be kept, and trying again does not help."""
    message = f"what the try has left could not be recorded: {type(error).__name__}: {error}"
    told = TaskError(type="ResultError", message=message)
    return TaskResult(task_id=result.task_id, fence=result.fence, outcome="failed", error=told, has_died=True)


def last_words(result: TaskResult) -> bytes:
    """How the log of a try ends whose process could not say why it failed."""
    if not result.has_died or result.error is None:
        return b""
    return f"{failure_line(result.error)}\n".encode(errors="backslashreplace")


def _without_a_word(result: TaskResult) -> TaskResult:
    """The process could not call anybody about its end."""
    return msgspec.structs.replace(result, has_died=True)
