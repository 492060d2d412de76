"""How an exception in user code becomes a failed result that shows the user's frames and none of ours."""

from __future__ import annotations

import os
import traceback

from headrace.handoff.messages import TaskError, TaskRequest, TaskResult

_OURS = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_MACHINERY = ("<frozen importlib", "<frozen runpy")
_TEXT_LIMIT = 100_000


def failure_of(request: TaskRequest, error: BaseException) -> TaskResult:
    """The failed result of a try that ended with an exception."""
    return failed(request, type(error).__name__, _sentence(request, error), user_traceback(error))


def failed(request: TaskRequest, error_type: str, message: str, detail: str = "") -> TaskResult:
    """A failed result with a reason in words."""
    error = TaskError(type=error_type, message=message[:_TEXT_LIMIT], traceback=detail[-_TEXT_LIMIT:])
    return TaskResult(task_id=request.task_id, fence=request.fence, outcome="failed", error=error)


def user_traceback(error: BaseException) -> str:
    """The traceback without the frames of Headrace; empty if no other frame is left."""
    summary = traceback.TracebackException.from_exception(error, limit=-50)
    if not _strip(summary) and not isinstance(error, SyntaxError):
        return ""
    return "".join(summary.format())


def _strip(summary: traceback.TracebackException) -> bool:
    """Remove our frames from an exception and its causes; whether any frame is left."""
    frames = [frame for frame in summary.stack if not _is_ours(frame.filename)]
    summary.stack = traceback.StackSummary.from_list(frames)
    linked = [other for other in (summary.__cause__, summary.__context__) if other is not None]
    return any([_strip(other) for other in linked]) or bool(frames)


def _is_ours(filename: str) -> bool:
    return filename.startswith((_OURS, *_MACHINERY))


def _sentence(request: TaskRequest, error: BaseException) -> str:
    if isinstance(error, SystemExit):
        return f"task `{request.key}` called sys.exit({error.code if error.code is not None else ''})"
    return str(error) or type(error).__name__
