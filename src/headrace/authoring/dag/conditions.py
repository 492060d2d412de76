"""`@task.run_if` and `@task.skip_if`: conditions that are looked at just before a task runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from headrace.authoring.dag.context import Context
from headrace.authoring.dag.exceptions import AirflowSkipException

Condition = Callable[[Context], bool]


def run_if(condition: Condition, skip_message: str | None = None) -> Callable[[Any], Any]:
    """Above `@task`: skip the task unless the condition, called with its context, returns something true."""
    return _deciding("run_if", lambda context: bool(condition(context)), skip_message)


def skip_if(condition: Condition, skip_message: str | None = None) -> Callable[[Any], Any]:
    """Above `@task`: skip the task if the condition, called with its context, returns something true."""
    return _deciding("skip_if", lambda context: not condition(context), skip_message)


def _deciding(name: str, goes_on: Condition, skip_message: str | None) -> Callable[[Any], Any]:
    def decorate(task: Any) -> Any:
        if not hasattr(task, "override"):
            raise TypeError(f"@task.{name} stands above @task, not above a plain function")
        then: Callable[[Context], None] | None = task.options.get("pre_execute")

        def pre_execute(context: Context) -> None:
            if not goes_on(context):
                raise AirflowSkipException(skip_message or f"skipped by @task.{name}")
            if then is not None:
                then(context)

        return task.override(pre_execute=pre_execute)

    return decorate
