"""Tasks that start a run of another DAG."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, ClassVar

from headrace.authoring.dag import BaseOperator, Context, DagRunState
from headrace.authoring.dag.exceptions import (
    AirflowException,
    AirflowFailException,
    AirflowSkipException,
    DagNotFound,
    DagRunTriggerException,
)
from headrace.authoring.dag.other_runs import engine_for, state_name
from headrace.authoring.dag.xcom_arg import NOTSET, Unset
from headrace.operators.instants import instant_of
from headrace.operators.options import default_deferrable
from headrace.operators.triggers import DagStateTrigger

RUN_ID = "trigger_run_id"
"""The name of the result that says which run was started."""
_NOW = "now"


class DagIsPaused(AirflowException):
    """The DAG that should be started is paused."""

    def __init__(self, dag_id: str) -> None:
        super().__init__(f"DAG `{dag_id}` is paused")
        self.dag_id = dag_id


class TriggerDagRunOperator(BaseOperator):
    """Starts a run of a DAG and, if asked to, waits for its end. The run's id is the result `trigger_run_id`."""

    operator_name = "trigger_dagrun"
    shown_fields: ClassVar[Sequence[str]] = ("trigger_dag_id", "wait_for_completion")
    template_fields: Sequence[str] = (
        *("trigger_dag_id", "trigger_run_id", "logical_date", "run_after", "conf"),
        *("wait_for_completion", "skip_when_already_exists"),
    )
    template_fields_renderers: ClassVar[dict[str, str]] = {"conf": "py"}
    ui_color = "#ffefeb"

    def __init__(
        self,
        *,
        trigger_dag_id: str,
        trigger_run_id: str | None = None,
        conf: Mapping[str, Any] | str | None = None,
        logical_date: str | datetime | Unset | None = NOTSET,
        run_after: str | datetime | Unset | None = NOTSET,
        execution_date: str | datetime | None = None,
        reset_dag_run: bool = False,
        wait_for_completion: bool = False,
        poke_interval: float = 60,
        allowed_states: Sequence[str] | None = None,
        failed_states: Sequence[str] | None = None,
        skip_when_already_exists: bool = False,
        fail_when_dag_is_paused: bool = False,
        note: str | None = None,
        deferrable: bool | None = None,
        openlineage_inject_parent_info: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.trigger_dag_id = trigger_dag_id
        self.trigger_run_id = trigger_run_id
        self.conf = conf
        has_old_name = logical_date is NOTSET and execution_date is not None
        self.logical_date = execution_date if has_old_name else logical_date
        self.run_after = run_after
        self.reset_dag_run = reset_dag_run
        self.wait_for_completion = wait_for_completion
        self.poke_interval = poke_interval
        self.allowed_states = self._states("allowed_states", allowed_states or [DagRunState.SUCCESS])
        self.failed_states = self._states(
            "failed_states", [DagRunState.FAILED] if failed_states is None else failed_states
        )
        self.skip_when_already_exists = skip_when_already_exists
        self.fail_when_dag_is_paused = fail_when_dag_is_paused
        self.note = note
        self.deferrable = default_deferrable() if deferrable is None else deferrable

    def execute(self, context: Context) -> None:
        start_and_wait(self, context, self._wish())

    def execute_complete(self, context: Context, event: Any) -> None:
        """Go on after the wait in a trigger, which tells the state that the run ended in."""
        _, told = event
        (run_id,) = told["run_ids"]
        _judge(self.trigger_dag_id, run_id, state_name(told[run_id]), self.allowed_states, self.failed_states)

    def _wish(self) -> DagRunTriggerException:
        if self.fail_when_dag_is_paused and _ask(self.trigger_dag_id, "get_workflow")["is_paused"]:
            raise DagIsPaused(self.trigger_dag_id)
        has_own_time = self.logical_date is not NOTSET
        wish = DagRunTriggerException(
            trigger_dag_id=self.trigger_dag_id,
            dag_run_id=str(self.trigger_run_id) if self.trigger_run_id else None,
            conf=self._conf(),
            logical_date=_instant(self.logical_date) if has_own_time else None,
            run_after=None if self.run_after is NOTSET else _instant(self.run_after),
            reset_dag_run=self.reset_dag_run,
            skip_when_already_exists=_is_true(self.skip_when_already_exists),
            wait_for_completion=_is_true(self.wait_for_completion),
            allowed_states=self.allowed_states,
            failed_states=self.failed_states,
            poke_interval=self.poke_interval,
            deferrable=self.deferrable,
            note=self.note,
        )
        # A run that is only told when to begin has no logical date, and neither has one that shall have none.
        wish.is_for_now = not has_own_time and self.run_after is NOTSET
        return wish

    def _conf(self) -> dict[str, Any]:
        try:
            conf = json.loads(self.conf) if isinstance(self.conf, str) and self.conf else self.conf or {}
            return dict(json.loads(json.dumps(conf)))
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"expected `conf` of task `{self.task_id}` to be a dict of JSON values, got: {self.conf!r} ({error})"
            ) from error

    def _states(self, name: str, states: Sequence[str]) -> list[str]:
        try:
            return [DagRunState(state) for state in states]
        except ValueError as error:
            raise ValueError(f"`{name}` of task `{self.task_id}` has a state that runs do not have: {error}") from None


def start_and_wait(operator: BaseOperator, context: Context, wish: DagRunTriggerException) -> None:
    """Start the run that is wished for and do what else the wish says."""
    run = _ask(
        wish.trigger_dag_id,
        "start_run",
        run_key=wish.dag_run_id,
        params=wish.conf or {},
        logical_time=_NOW if wish.is_for_now else _text(wish.logical_date),
        run_after=_text(wish.run_after),
        clears_existing=wish.reset_dag_run,
    )
    if not run["is_new"] and not wish.reset_dag_run:
        message = f"DAG `{wish.trigger_dag_id}` already has a run `{run['run_key']}`"
        raise (AirflowSkipException if wish.skip_when_already_exists else AirflowFailException)(message)
    operator.log.info("started run `%s` of DAG `%s`", run["run_key"], wish.trigger_dag_id)
    context["ti"].xcom_push(RUN_ID, run["run_key"])
    if wish.wait_for_completion:
        _wait(operator, run, wish)


def _wait(operator: BaseOperator, run: Mapping[str, Any], wish: DagRunTriggerException) -> None:
    if wish.deferrable:
        operator.defer(
            trigger=DagStateTrigger(
                dag_id=wish.trigger_dag_id,
                states=[*wish.allowed_states, *wish.failed_states],
                run_ids=[run["run_key"]],
                poll_interval=wish.poke_interval,
            ),
            method_name="execute_complete",
        )
    while not _judge(
        wish.trigger_dag_id, run["run_key"], state_name(run["state"]), wish.allowed_states, wish.failed_states
    ):
        operator.log.info("run `%s` of DAG `%s` is %s", run["run_key"], wish.trigger_dag_id, run["state"])
        time.sleep(wish.poke_interval)
        run = engine_for("look at other runs").ask("get_run", run_id=run["run_id"])


def _judge(dag_id: str, run_id: str, state: str, allowed: Sequence[str], failed: Sequence[str]) -> bool:
    """Whether the wait is over; an exception if it ended badly."""
    if state in failed:
        raise AirflowException(f"run `{run_id}` of DAG `{dag_id}` ended as {state}")
    return state in allowed


def _ask(dag_id: str, verb: str, **args: Any) -> dict[str, Any]:
    try:
        answer: dict[str, Any] = engine_for("start a run").ask(verb, workflow=dag_id, **args)
    except LookupError as error:
        raise DagNotFound(str(error) or f"there is no DAG `{dag_id}`") from None
    return answer


def _instant(value: Any) -> datetime | None:
    # What a template renders a missing date to.
    return None if value in (None, "", "None") else instant_of(value)


def _text(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat()


def _is_true(value: Any) -> bool:
    return value.strip().lower() in ("true", "1", "yes") if isinstance(value, str) else bool(value)
