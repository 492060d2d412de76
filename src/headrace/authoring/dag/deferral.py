"""From a trigger object, or the description of one, to the JSON form of a wait."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import msgspec

from headrace.authoring.dag.exceptions import SerializationError, TaskAwaitingInput, TaskDeferred
from headrace.authoring.dag.triggers import StartTriggerArgs
from headrace.authoring.dag.values import encode_value
from headrace.definition import Deferral
from headrace.errors import did_you_mean

_SEEING_THE_END = (
    *("on_success_callback", "on_failure_callback", "on_retry_callback", "on_skipped_callback"),
    "outlets",
)
"""What a task may have that only a process of its own can serve when it ends."""


def deferral_of(task: Any, deferred: TaskDeferred) -> Deferral:
    """What an operator asked for by `defer`. Raises what tells the user that it cannot be."""
    if isinstance(deferred, TaskAwaitingInput):
        waiting = _deferral(task, "", {}, deferred.method_name, deferred.kwargs, deferred.timeout)
        return msgspec.structs.replace(waiting, question=deferred.question)
    if not hasattr(deferred.trigger, "serialize"):
        raise TypeError(f"expected the trigger of task `{task.task_id}` to be a BaseTrigger, got: {deferred.trigger!r}")
    path, arguments = deferred.trigger.serialize()
    _check_method(task, deferred.method_name)
    return _deferral(task, path, arguments, deferred.method_name, deferred.kwargs, deferred.timeout)


def initial_deferral(task: Any) -> Deferral | None:
    """What a task waits for before anything of it runs; None if a process must find that out first, or nothing."""
    given: StartTriggerArgs | None = task.start_trigger_args
    if not task.start_from_trigger or given is None or _has_templates(task, given):
        return None
    return _deferral(task, given.trigger_cls, given.trigger_kwargs, given.next_method, given.next_kwargs, given.timeout)


class NamedTrigger:
    """A trigger that is only described: its class is never made here."""

    def __init__(self, path: str, arguments: dict[str, Any]) -> None:
        self._path = path
        self._arguments = arguments

    def serialize(self) -> tuple[str, dict[str, Any]]:
        return self._path, self._arguments


def _deferral(
    task: Any,
    path: str,
    arguments: dict[str, Any] | None,
    method: str | None,
    kwargs: dict[str, Any] | None,
    timeout: timedelta | float | None,
) -> Deferral:
    return Deferral(
        trigger=path,
        arguments=_json_form(task, path, arguments or {}),
        method=method or "",
        kwargs=_json_form(task, path, kwargs or {}),
        timeout_seconds=timeout.total_seconds() if isinstance(timeout, timedelta) else timeout,
        ends_in_process=any(getattr(task.settings, name) for name in _SEEING_THE_END),
    )


def _json_form(task: Any, path: str, values: dict[str, Any]) -> dict[str, Any]:
    try:
        form: dict[str, Any] = {name: msgspec.json.decode(encode_value(one, name)) for name, one in values.items()}
    except SerializationError as error:
        raise SerializationError(f"task `{task.task_id}` cannot wait for trigger `{path}`: {error}") from None
    return form


def _check_method(task: Any, name: str | None) -> None:
    # Told now, not when the wait has ended.
    if name and not callable(getattr(task, name, None)):
        hint = did_you_mean(name, [one for one in dir(task) if not one.startswith("_")])
        advice = f", {hint}" if hint else ""
        raise AttributeError(
            f"task `{task.task_id}` is to go on with `{name}`, but {task.task_type} has no such method{advice}"
        )


def _has_templates(task: Any, given: StartTriggerArgs) -> bool:
    rendered = [one for name, one in (given.trigger_kwargs or {}).items() if name in task.template_fields]
    return any(not isinstance(one, str | int | float | None) or "{" in str(one) for one in rendered)
