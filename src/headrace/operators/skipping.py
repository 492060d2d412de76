"""Skipping other tasks, for operators that decide by code of their own."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from headrace.authoring.dag import Context
from headrace.authoring.dag.logging_mixin import LoggingMixin
from headrace.operators.branch import follow, skip_tasks

SKIPPED = "skipped"
FOLLOWED = "followed"


class SkipMixin(LoggingMixin):
    """Gives an operator `skip` and `skip_all_except`, which take effect when its task has succeeded."""

    def skip(self, ti: Any, tasks: Iterable[Any]) -> None:
        """Have these tasks skipped."""
        ids = [task.task_id for task in tasks if hasattr(task, "task_id")]
        if ids:
            skip_tasks(ti, ids)

    def skip_all_except(self, ti: Any, branch_task_ids: str | Iterable[str] | None) -> None:
        """Have those of the next tasks skipped that are neither chosen nor come after a chosen one."""
        follow(ti.task, Context({"ti": ti}, {}), branch_task_ids)


class BranchMixIn(SkipMixin):
    """Gives an operator `do_branch`."""

    def do_branch(self, context: Context, branches_to_execute: str | Iterable[str] | None) -> Any:
        """Follow these tasks or groups; gives the choice back."""
        return follow(context["ti"].task, context, branches_to_execute)
