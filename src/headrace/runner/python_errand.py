"""Errands of Python DAGs: callbacks that no task process could call. `handoff/errands.py` says how to add a kind."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from headrace.authoring.dag.context import Context, enter_task, leave_task
from headrace.authoring.dag.loading import DagFile
from headrace.authoring.dag.task_instance import task_context
from headrace.handoff import RUN_ENDED, RUN_LATE, TASKS_LATE, TRY_DIED, Channel, TaskError, TaskRequest, TaskResult
from headrace.runner.alerts import mail_about_failure
from headrace.runner.callbacks import call_all
from headrace.runner.python_deadlines import after_late_run, after_late_tasks
from headrace.runner.python_task import dag_run_of, instance_of

_REASONS = {"deadlocked": "all_tasks_deadlocked", "timed_out": "timed_out"}
"""What DAG callbacks are told, by what the engine calls it."""


def run_python_errand(file: DagFile, request: TaskRequest, channel: Channel) -> TaskResult:
    """Do one errand. Exceptions of user code are told and final; only a dead process is worth another try."""
    errand = request.errand
    dag = file.dags.get(request.run.workflow)
    if errand is None or errand.kind not in ERRANDS:
        return _final(request, "UnknownErrand", f"nobody knows how to do the errand `{errand and errand.kind}`")
    if dag is None:
        return _final(request, "DagNotFound", f"DAG `{request.run.workflow}` is not in `{file.file}` as it is now")
    context = _context(dag, request, channel)
    enter_task(context, channel)
    try:
        errors = ERRANDS[errand.kind](dag, context, errand.payload)
    finally:
        leave_task()
    if errors:
        return _final(request, type(errors[0]).__name__, str(errors[0]) or type(errors[0]).__name__)
    return TaskResult(task_id=request.task_id, fence=request.fence, outcome="success")


def _final(request: TaskRequest, kind: str, message: str) -> TaskResult:
    error = TaskError(type=kind, message=message)
    return TaskResult(task_id=request.task_id, fence=request.fence, outcome="failed", error=error, is_retryable=False)


def _context(dag: Any, request: TaskRequest, channel: Channel) -> Context:
    """The context of the task that the errand is about; without one, what there is to say of the run."""
    task = dag.task_dict.get(request.key)
    if task is not None:
        return task_context(instance_of(task, dag, request, channel))
    run = dag_run_of(request, dag)
    values = {"dag": dag, "dag_run": run, "run_id": run.run_id, "params": dag.params.dump() | run.conf}
    return Context(values, {})


def _after_run(dag: Any, context: Context, payload: dict[str, Any]) -> list[Exception]:
    state = payload["state"]
    context["dag_run"].state = state
    fallback = "success" if state == "success" else "task_failure"
    context["reason"] = _REASONS.get(payload["reason"] or "", fallback)
    if "ti" in context:
        context["ti"].state = state
    name = "on_success_callback" if state == "success" else "on_failure_callback"
    return call_all(getattr(dag, name), context, f"{name} of DAG `{dag.dag_id}`")


def _after_death(dag: Any, context: Context, payload: dict[str, Any]) -> list[Exception]:
    if "task" not in context:
        return []
    is_final = payload["ending"] == "failed"
    settings = context["task"].settings
    context["exception"] = payload["error"]
    context["ti"].state = "failed" if is_final else "up_for_retry"
    name = "on_failure_callback" if is_final else "on_retry_callback"
    errors = call_all(getattr(settings, name), context, f"{name} of task `{context['task'].task_id}`")
    mail_about_failure(context, is_final=is_final)
    return errors


ERRANDS: dict[str, Callable[[Any, Context, dict[str, Any]], list[Exception]]] = {
    RUN_ENDED: _after_run,
    TRY_DIED: _after_death,
    TASKS_LATE: after_late_tasks,
    RUN_LATE: after_late_run,
}
"""What does each kind: called with the DAG, the context and the payload; gives the exceptions of user code."""
