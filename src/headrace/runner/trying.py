"""One try: call the language's task runner, and make a result out of whatever happens there."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TypeVar

from headrace.errors import HeadraceError, LoadError
from headrace.handoff import (
    Channel,
    Done,
    TaskRequest,
    TaskResult,
    failed,
    failure_line,
    failure_of,
    frame,
    user_traceback,
)
from headrace.runner.termination import TaskTerminated

Loaded = TypeVar("Loaded")


def run_guarded(
    run: Callable[[Loaded, TaskRequest, Channel], TaskResult], file: Loaded, request: TaskRequest, channel: Channel
) -> TaskResult:
    """The runner's result, or a failed one that says which exception escaped from it. A failure is also printed."""
    return _shown(_guarded(run, file, request, channel))


def _guarded(
    run: Callable[[Loaded, TaskRequest, Channel], TaskResult], file: Loaded, request: TaskRequest, channel: Channel
) -> TaskResult:
    try:
        return run(file, request, channel)
    except TaskTerminated:
        return TaskResult(task_id=request.task_id, fence=request.fence, outcome="stopped")
    except LoadError as error:
        return failed(request, "LoadError", str(error), error.detail or user_traceback(error))
    except HeadraceError as error:
        return failed(request, type(error).__name__, str(error), user_traceback(error))
    except BaseException as error:
        return failure_of(request, error)


def _shown(result: TaskResult) -> TaskResult:
    """The same result; why it failed goes to standard error, and so to the end of the try's log."""
    error = result.error
    if result.outcome == "failed" and error is not None:
        try:
            print(failure_line(error), file=sys.stderr)
        except (AttributeError, OSError, ValueError):
            pass  # user code closed or replaced the stream; the result still says why
    return result


def framed_result(request: TaskRequest, result: TaskResult, limit_bytes: int, is_leaving: bool = False) -> bytes:
    """The last message of a try. A result that cannot be sent becomes a failed one that says why."""
    try:
        data = frame(Done(result=result, is_leaving=is_leaving))
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        message = f"task `{request.key}` gave a result that is not made of JSON values: {error}"
        return frame(Done(result=_shown(failed(request, "ResultError", message))))
    if len(data) > limit_bytes:
        message = f"task `{request.key}` gave a result of {len(data)} bytes, the limit is {limit_bytes}"
        hint = "hint: store big data elsewhere and return its place"
        return frame(Done(result=_shown(failed(request, "ResultError", f"{message}\n{hint}"))))
    return data
