"""Waiting for runs of another DAG, or for tasks in them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any, ClassVar

from headrace.authoring.dag import Context, DagRunState, TaskInstanceState
from headrace.authoring.dag.exceptions import AirflowException, AirflowSkipException
from headrace.authoring.dag.other_runs import engine_for
from headrace.handoff import MARKED_TASK
from headrace.operators.empty import EmptyOperator
from headrace.operators.instants import date_of_run, instant_of
from headrace.operators.options import default_deferrable
from headrace.operators.python import arguments_for
from headrace.operators.sensors.poking import BaseSensorOperator
from headrace.operators.triggers import WorkflowTrigger


class AirflowExternalTaskSensorException(AirflowException):
    """The common parent of what goes wrong while waiting for another DAG."""


class ExternalDagNotFoundError(AirflowExternalTaskSensorException):
    pass


class ExternalDagDeletedError(AirflowExternalTaskSensorException):
    pass


class ExternalTaskNotFoundError(AirflowExternalTaskSensorException):
    pass


class ExternalTaskGroupNotFoundError(AirflowExternalTaskSensorException):
    pass


class ExternalDagFailedError(AirflowExternalTaskSensorException):
    pass


class ExternalTaskFailedError(AirflowExternalTaskSensorException):
    pass


class ExternalTaskGroupFailedError(AirflowExternalTaskSensorException):
    pass


class DuplicateStateError(AirflowExternalTaskSensorException):
    pass


class ExternalTaskSensor(BaseSensorOperator):
    """Waits until another DAG, some of its tasks or a group of them are done, in the runs for certain dates.

    The dates are the run's own logical date, earlier by `execution_delta`, or what `execution_date_fn` returns. A
    target in one of the `failed_states` fails the sensor (with `soft_fail` it is skipped), one in the `skipped_states`
    skips it; by default a failed target is waited for, because somebody may run it again.
    """

    operator_name = "external_task_sensor"
    shown_fields: ClassVar[Sequence[str]] = (
        *("external_dag_id", "external_task_id", "external_task_group_id"),
        *BaseSensorOperator.shown_fields,
    )
    template_fields: Sequence[str] = (
        *("external_dag_id", "external_task_id", "external_task_ids", "external_task_group_id"),
    )
    ui_color = "#4db7db"

    def __init__(
        self,
        *,
        external_dag_id: str,
        external_task_id: str | None = None,
        external_task_ids: Collection[str] | None = None,
        external_task_group_id: str | None = None,
        allowed_states: Iterable[str] | None = None,
        skipped_states: Iterable[str] | None = None,
        failed_states: Iterable[str] | None = None,
        execution_delta: timedelta | None = None,
        execution_date_fn: Callable[..., Any] | None = None,
        check_existence: bool = False,
        poll_interval: float | None = None,
        deferrable: bool | None = None,
        **kwargs: Any,
    ) -> None:
        if poll_interval is not None:
            kwargs.setdefault("poke_interval", poll_interval)
        super().__init__(**kwargs)
        self.external_dag_id = external_dag_id
        self.external_task_id = external_task_id
        self.external_task_ids = external_task_ids or None
        self.external_task_group_id = external_task_group_id
        self.allowed_states = list(allowed_states or [TaskInstanceState.SUCCESS])
        self.skipped_states = list(skipped_states or ())
        self.failed_states = list(failed_states or ())
        self.execution_delta = execution_delta
        self.execution_date_fn = execution_date_fn
        self.check_existence = check_existence
        self.deferrable = default_deferrable() if deferrable is None else deferrable
        self._check_arguments()
        if external_task_id is not None:
            self.external_task_ids = [external_task_id]

    def poke(self, context: Context) -> bool:
        dates = self._dates(context)
        self.log.info("looking at %s for %s", self._target, ", ".join(date.isoformat() for date in dates))
        if self.check_existence:
            self._check_existence()
        found = self._states(context["ti"], dates)
        present = set().union(*found)
        self._stop_if(present & set(self.failed_states), self._fail)
        self._stop_if(present & set(self.skipped_states), self._skip)
        done = [states for states in found if states and states <= set(self.allowed_states)]
        return len(done) >= len(dates)

    def execute(self, context: Context) -> Any:
        if not self.deferrable:
            return super().execute(context)
        if self.check_existence:
            self._check_existence()
        self.defer(
            trigger=WorkflowTrigger(
                external_dag_id=self.external_dag_id,
                external_task_ids=self.external_task_ids,
                external_task_group_id=self.external_task_group_id,
                allowed_states=self.allowed_states,
                failed_states=self.failed_states,
                skipped_states=self.skipped_states,
                logical_dates=self._dates(context),
                poke_interval=self.poke_interval,
                soft_fail=self.soft_fail,
            ),
            method_name="execute_complete",
            timeout=timedelta(seconds=self.timeout),
        )

    def execute_complete(self, context: Context, event: Any = None) -> None:
        """Go on after the wait in a trigger."""
        status = (event or {}).get("status")
        if status == "failed":
            self._fail("failed")
        elif status == "skipped":
            self._skip("skipped")
        elif status != "success":
            raise ExternalTaskNotFoundError(f"the trigger that waited for {self._target} told nothing")

    @property
    def _target(self) -> str:
        if self.external_task_ids:
            tasks = ", ".join(f"`{task_id}`" for task_id in self.external_task_ids)
            return f"{tasks} of DAG `{self.external_dag_id}`"
        if self.external_task_group_id:
            return f"group `{self.external_task_group_id}` of DAG `{self.external_dag_id}`"
        return f"DAG `{self.external_dag_id}`"

    def _dates(self, context: Context) -> list[datetime]:
        date = date_of_run(context)
        if self.execution_delta is not None:
            return [date - self.execution_delta]
        if self.execution_date_fn is None:
            return [date]
        dates = self.execution_date_fn(date, **arguments_for(self.execution_date_fn, [None], {}, context))
        return list(dates) if isinstance(dates, list | tuple | set) else [dates]

    def _states(self, instance: Any, dates: Sequence[datetime]) -> list[set[str]]:
        """For each run that is there: every state that a target is in; none if a task that is meant is not there."""
        if not self.external_task_ids and self.external_task_group_id is None:
            return [{state} for state in instance.run_states(self.external_dag_id, dates).values()]
        wanted = list(self.external_task_ids or ())
        if len(set(wanted)) < len(wanted):
            raise ValueError(f"sensor `{self.task_id}` names a task twice: {wanted}")
        runs = instance.task_state_counts(
            self.external_dag_id, dates, task_ids=wanted or None, task_group_id=self.external_task_group_id
        )
        return [set().union(*tasks.values()) if len(tasks) >= len(wanted) else {""} for tasks in runs.values()]

    def _stop_if(self, states: set[str], stop: Callable[[str], None]) -> None:
        if states:
            stop(", ".join(sorted(states)))

    def _fail(self, states: str) -> None:
        message = f"{self._target} ended as {states}"
        if self.soft_fail:
            raise AirflowSkipException(message)
        if self.external_task_ids:
            raise ExternalTaskFailedError(message)
        raise (ExternalTaskGroupFailedError if self.external_task_group_id else ExternalDagFailedError)(message)

    def _skip(self, states: str) -> None:
        raise AirflowSkipException(f"{self._target} ended as {states}")

    def _check_existence(self) -> None:
        try:
            tasks = set(engine_for("look at other DAGs").ask("get_workflow", workflow=self.external_dag_id)["tasks"])
        except LookupError as error:
            raise ExternalDagNotFoundError(str(error)) from None
        missing = sorted(set(self.external_task_ids or ()) - tasks)
        if missing:
            raise ExternalTaskNotFoundError(f"DAG `{self.external_dag_id}` has no task `{missing[0]}`")
        group = self.external_task_group_id
        if group is not None and not any(key == group or key.startswith(f"{group}.") for key in tasks):
            raise ExternalTaskGroupNotFoundError(f"DAG `{self.external_dag_id}` has no group `{group}`")

    def _check_arguments(self) -> None:
        owner = f"sensor `{self.task_id}`"
        targets = (self.external_task_id, self.external_task_ids, self.external_task_group_id)
        if sum(target is not None for target in targets) > 1:
            raise ValueError(
                f"{owner} got more than one of external_task_id, external_task_ids and external_task_group_id"
            )
        if self.execution_delta is not None and self.execution_date_fn is not None:
            raise ValueError(f"{owner} got both execution_delta and execution_date_fn")
        states = [*self.allowed_states, *self.skipped_states, *self.failed_states]
        if len(set(states)) < len(states):
            raise DuplicateStateError(
                f"{owner} has a state in more than one of allowed_states, skipped_states and failed_states"
            )
        known: list[str] = list(DagRunState if targets == (None, None, None) else TaskInstanceState)
        unknown = [state for state in states if state not in known]
        if unknown:
            raise ValueError(f"expected the states of {owner} to be some of {', '.join(known)}, got: `{unknown[0]}`")


class ExternalTaskMarker(EmptyOperator):
    """Says that a task of another DAG depends on the tasks before this one: clearing them clears it, too."""

    operator_name = "external_task_marker"
    shown_fields: ClassVar[Sequence[str]] = ("external_dag_id", "external_task_id", "recursion_depth")
    template_fields: Sequence[str] = ("external_dag_id", "external_task_id", "logical_date")
    ui_color = "#4db7db"

    def __init__(
        self,
        *,
        external_dag_id: str,
        external_task_id: str,
        logical_date: str | datetime | None = None,
        execution_date: str | datetime | None = None,
        recursion_depth: int = 10,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.external_dag_id = external_dag_id
        self.external_task_id = external_task_id
        self.logical_date = execution_date or logical_date
        if recursion_depth <= 0:
            raise ValueError(f"expected `recursion_depth` of `{self.task_id}` to be positive, got: {recursion_depth}")
        self.recursion_depth = recursion_depth

    def execute(self, context: Context) -> None:
        """Leave word of which task it is about; whoever clears this one reads it."""
        marked = {
            "workflow": self.external_dag_id,
            "task": self.external_task_id,
            "logical_time": instant_of(self.logical_date or date_of_run(context)).isoformat(),
            "depth": self.recursion_depth,
        }
        context["ti"].xcom_push(MARKED_TASK, marked)
