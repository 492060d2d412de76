"""How a task of a Python DAG goes on after it waited for a trigger."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from headrace.authoring.dag.deferral import NamedTrigger
from headrace.authoring.dag.exceptions import (
    AirflowException,
    AirflowSkipException,
    TaskDeferralError,
    TaskDeferralTimeout,
    TaskDeferred,
)
from headrace.authoring.dag.operator import TRIGGER_FAILED, TRIGGER_TIMED_OUT
from headrace.authoring.dag.values import decode_value
from headrace.handoff import Resume, TaskRequest
from headrace.template.jinja import Renderer


def resume(task: Any, context: Any, given: Resume) -> Any:
    """Call what goes on in place of `execute`."""
    if given.outcome:
        return _end(given)
    if given.error is not None:
        is_late = given.error.type == TaskDeferralTimeout.__name__
        told: dict[str, Any] = {"error": TRIGGER_TIMED_OUT if is_late else given.error.message}
        if given.error.traceback:
            told["traceback"] = given.error.traceback.splitlines()
        return task.resume_execution(TRIGGER_FAILED, told, context)
    if not given.method:
        raise TaskDeferralError("the trigger fired, but the task did not say with which method it goes on")
    kwargs = {name: decode_value(value) for name, value in given.kwargs.items()}
    return task.resume_execution(given.method, {**kwargs, "event": decode_value(given.event)}, context)


def _end(given: Resume) -> None:
    """The trigger has said how the task ends; it ends so here, where its callbacks are."""
    if given.outcome == "skipped":
        raise AirflowSkipException("the trigger skipped the task")
    if given.outcome == "failed":
        raise AirflowException(given.error.message if given.error else "the trigger let the task fail")


def begin_from_trigger(task: Any, renderer: Renderer) -> None:
    """Wait for the trigger that the task starts from, if the engine could not begin to by itself."""
    given = task.start_trigger_args
    if given is None:
        return
    arguments = dict(given.trigger_kwargs or {})
    for name in arguments.keys() & set(task.template_fields):
        arguments[name] = renderer.render(arguments[name], (), ())
    trigger = NamedTrigger(given.trigger_cls, arguments)
    raise TaskDeferred(trigger=trigger, method_name=given.next_method, kwargs=given.next_kwargs, timeout=given.timeout)


def seconds_left(request: TaskRequest, limit_seconds: float | None) -> float | None:
    """What is left of a try's time limit, which counts its waits. None: there is no limit."""
    given = request.resume
    if limit_seconds is None or given is None or request.started_at is None:
        return limit_seconds
    if given.error is not None or given.outcome:
        return None  # it only hears how its wait ended
    # Never zero, which would be no limit at all.
    return max(0.001, limit_seconds - (datetime.now(UTC) - request.started_at).total_seconds())
