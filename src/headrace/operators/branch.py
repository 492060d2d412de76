"""Tasks that decide which of the tasks after them go on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

from headrace.authoring.dag import BaseOperator, Context
from headrace.authoring.dag.exceptions import AirflowException
from headrace.errors import did_you_mean
from headrace.operators.python import PythonOperator

DECISION_KEY = "skipmixin_key"
"""The name of the result under which a decision is remembered."""


class BaseBranchOperator(BaseOperator):
    """Follows some of the tasks after it and skips the others; subclasses say which in `choose_branch`."""

    operator_name = "branch"

    def choose_branch(self, context: Context) -> str | Iterable[str] | None:
        """Ids of tasks or groups to follow; None follows nothing."""
        raise NotImplementedError(f"{type(self).__name__} has no choose_branch()")

    def execute(self, context: Context) -> Any:
        return follow(self, context, self.choose_branch(context))


class BranchPythonOperator(PythonOperator):
    """Follows the tasks or groups whose ids its function returns."""

    operator_name = "branch"

    def choose_branch(self, context: Context) -> Any:
        return self.call(context)

    def execute(self, context: Context) -> Any:
        if self.templates_dict:
            context["templates_dict"] = self.templates_dict
        return follow(self, context, self.choose_branch(context))


class ShortCircuitOperator(PythonOperator):
    """Goes on if its function returns something true; otherwise skips what comes after it."""

    operator_name = "short_circuit"
    shown_fields: ClassVar[Sequence[str]] = ("callable_name", "ignore_downstream_trigger_rules")

    def __init__(self, *, ignore_downstream_trigger_rules: bool = True, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.ignore_downstream_trigger_rules = ignore_downstream_trigger_rules

    def execute(self, context: Context) -> Any:
        condition = super().execute(context)
        if not condition:
            self._skip(context["ti"])
        return condition

    def _skip(self, instance: Any) -> None:
        everything = self.ignore_downstream_trigger_rules
        after = self.get_flat_relatives() if everything else self.get_direct_relatives()
        skip_tasks(instance, [task.task_id for task in after if not task.is_teardown])


def skip_tasks(instance: Any, tasks: Iterable[str | tuple[str, int]]) -> None:
    """Have these tasks skipped when the present one has succeeded; one instance of a task stands for all of them."""
    ids = dict.fromkeys(task if isinstance(task, str) else task[0] for task in tasks)
    instance.skipped = tuple(ids)
    instance.xcom_push(DECISION_KEY, {"skipped": list(ids)})


def follow(operator: Any, context: Context, choice: Any) -> Any:
    """Let only the chosen tasks and what comes after them go on; gives back the choice."""
    chosen = _tasks_of(operator, choice)
    followed = {task.task_id for task in chosen}
    for task in chosen:
        followed |= task.get_flat_relative_ids()
    instance = context["ti"]
    instance.followed = tuple(sorted(followed & operator.downstream_task_ids))
    instance.xcom_push(DECISION_KEY, {"followed": list(instance.followed)})
    return choice


def _tasks_of(operator: Any, choice: Any) -> list[Any]:
    if choice is None:
        return []
    ids = [choice] if isinstance(choice, str) or not isinstance(choice, Iterable) else list(choice)
    if not all(isinstance(task_id, str) for task_id in ids):
        raise AirflowException(f"expected branch `{operator.task_id}` to choose ids of tasks, got: {choice!r}")
    return [task for task_id in ids for task in _named(operator, task_id)]


def _named(operator: Any, task_id: str) -> Sequence[Any]:
    dag = operator.dag
    if dag.has_task(task_id):
        return [dag.get_task(task_id)]
    groups = dag.task_group_dict
    if task_id in groups:
        roots: Sequence[Any] = groups[task_id].roots
        return roots
    hint = did_you_mean(task_id, [*dag.task_dict, *groups])
    raise AirflowException(
        f"branch `{operator.task_id}` chose `{task_id}`, but DAG `{dag.dag_id}` has no such task"
        + (f", {hint}" if hint else "")
    )
