"""A task of a Python DAG that is a whole `.dig` workflow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from headrace.authoring.dag import BaseOperator, Context
from headrace.authoring.dag.exceptions import AirflowException
from headrace.authoring.dag.other_runs import engine_for
from headrace.operators.instants import instant_of
from headrace.operators.triggers.run_end import RunEndTrigger


class DigWorkflowOperator(BaseOperator):
    """Has a workflow run for a session time, by default the run's own, and waits for its end without a process.

        DigWorkflowOperator(task_id="load", workflow="daily_load", workflow_params={"day": "{{ ds }}"})

    A run for that time that exists already is waited for, as `require>` does. The result is `{"run_id", "state"}`.
    """

    operator_name = "dig_workflow"
    shown_fields: ClassVar[Sequence[str]] = ("workflow", "project")
    template_fields: Sequence[str] = ("workflow", "project", "session_time", "workflow_params")
    ui_color = "#e6f2ff"

    def __init__(
        self,
        *,
        workflow: str,
        project: str | None = None,
        session_time: Any = None,
        workflow_params: Mapping[str, Any] | None = None,
        ignore_failure: bool = False,
        poke_interval: float = 5,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.workflow = workflow
        self.project = project
        self.session_time = session_time
        self.workflow_params = workflow_params
        self.ignore_failure = ignore_failure
        self.poke_interval = poke_interval

    def execute(self, context: Context) -> None:
        run = self._found_or_started(context)
        self.log.info("waiting for run `%s` of workflow `%s`", run["run_key"], run["workflow"])
        self.defer(
            trigger=RunEndTrigger(run_id=run["run_id"], poll_interval=self.poke_interval),
            method_name="execute_complete",
        )

    def execute_complete(self, context: Context, event: Any) -> dict[str, str]:
        """Judge the run when it has ended."""
        if event["state"] != "success" and not self.ignore_failure:
            raise AirflowException(f"run `{event['run_id']}` of workflow `{self.workflow}` ended as {event['state']}")
        return dict(event)

    def _found_or_started(self, context: Context) -> dict[str, Any]:
        engine = engine_for("start a run")
        time = self.session_time or context["logical_date"]
        moment = instant_of(time).isoformat() if time else None
        which = {"workflow": self.workflow, "project": self.project}
        params = dict(self.workflow_params or {})
        try:
            found = engine.ask("get_runs", **which, logical_times=[moment]) if moment else []
            run: dict[str, Any] = (
                found[0] if found else engine.ask("start_run", **which, params=params, logical_time=moment or "now")
            )
        except LookupError as error:
            raise AirflowException(str(error)) from None
        return run
