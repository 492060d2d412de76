"""Which endings of tasks and runs want user code to be called, as data for the engine."""

from __future__ import annotations

from typing import Any

from headrace.definition import Ending


def calls_back_of_run(dag: Any) -> tuple[Ending, ...]:
    """The endings of a DAG's runs that have callbacks."""
    wanted: tuple[tuple[Ending, Any], ...] = (("success", dag.on_success_callback), ("failed", dag.on_failure_callback))
    return tuple(ending for ending, callbacks in wanted if callbacks)


def calls_back_of_task(settings: Any) -> tuple[Ending, ...]:
    """The endings of a task's tries that have callbacks or e-mails."""
    wanted: tuple[tuple[Ending, Any, Any], ...] = (
        ("failed", settings.on_failure_callback, settings.email_on_failure),
        ("retry", settings.on_retry_callback, settings.email_on_retry),
    )
    return tuple(ending for ending, callbacks, mails in wanted if callbacks or (settings.email and mails))
