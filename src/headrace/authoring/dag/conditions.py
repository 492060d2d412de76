"""`@task.run_if` and `@task.skip_if`: conditions that are looked at just before a task runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from headrace.authoring.dag.context import Context
from headrace.authoring.dag.exceptions import AirflowSkipException

Condition = Callable[[Context], bool | tuple[bool, str | None]]
"""May give the message of a skip with its answer."""


def run_if(condition: Condition, skip_message: str | None = None) -> Callable[[Any], Any]:
    """Above `@task`: skip the task unless the condition, called with its context, returns something true."""
    return _deciding("run_if", condition, skip_message, goes_on_if=True)


def skip_if(condition: Condition, skip_message: str | None = None) -> Callable[[Any], Any]:
    """Above `@task`: skip the task if the condition, called with its context, returns something true."""
    return _deciding("skip_if", condition, skip_message, goes_on_if=False)


def _deciding(name: str, condition: Condition, skip_message: str | None, *, goes_on_if: bool) -> Callable[[Any], Any]:
    def decorate(task: Any) -> Any:
        if not hasattr(task, "override"):
            raise TypeError(f"@task.{name} stands above @task, not above a plain function")
        then: Callable[[Context], None] | None = task.options.get("pre_execute")

        def pre_execute(context: Context) -> None:
            answer = condition(context)
            is_true, message = answer if isinstance(answer, tuple) else (answer, None)
            if bool(is_true) is not goes_on_if:
                raise AirflowSkipException(message or skip_message or f"skipped by @task.{name}")
            if then is not None:
                then(context)

        return task.override(pre_execute=pre_execute)

    return decorate
