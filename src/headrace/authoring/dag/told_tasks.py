"""Tasks and runs around the present one, as user code sees them: plain data that the engine was asked for."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from headrace.authoring.asking import Engine
from headrace.authoring.dag.context import get_current_context
from headrace.authoring.dag.dates import to_pendulum
from headrace.authoring.dag.other_runs import engine_for, state_name
from headrace.authoring.dag.xcom_arg import RETURN_VALUE

_STATES_OF = {"failed": ("failed", "canceled")}
"""What the engine calls a state that Airflow has only one word for."""


def states_of(state: Any) -> list[str]:
    """The engine's words for one state, several or any (None)."""
    given = [] if state is None else [state] if isinstance(state, str) else list(state)
    return [word for one in given for word in _STATES_OF.get(str(one), (str(one),))]


def date_of(text: str | None) -> Any:
    return None if text is None else to_pendulum(datetime.fromisoformat(text))


class ToldTask:
    """One task of a run, or one instance of a mapped task, as it was when the engine was asked."""

    def __init__(self, told: dict[str, Any], dag_id: str, run_id: str, logical_date: Any) -> None:
        self.dag_id = dag_id
        self.run_id = run_id
        self.logical_date = self.execution_date = logical_date
        self.task_id: str = told["task"]
        self.map_index: int = told["map_index"]
        # A task that has not begun has no state in Airflow.
        self.state = None if told["state"] == "none" else state_name(told["state"])
        self.try_number: int = told["try_number"]
        self.max_tries: int = told["max_tries"]
        self.operator: str = told["operator"]
        self.pool: str = told["pool"]
        self.queue: str = told["queue"]
        self.start_date = date_of(told["started_at"])
        self.end_date = date_of(told["ended_at"])

    @property
    def duration(self) -> float | None:
        """Seconds from its start to its end, once it has ended."""
        if self.start_date is None or self.end_date is None:
            return None
        return float((self.end_date - self.start_date).total_seconds())

    def current_state(self, session: Any = None) -> str | None:
        return self.state

    def xcom_pull(self, task_ids: Any = None, key: str = RETURN_VALUE, default: Any = None, **options: Any) -> Any:
        """A result of its run: its own, or those of other tasks."""
        wanted = self.task_id if task_ids is None else task_ids
        if task_ids is None and self.map_index >= 0:
            options.setdefault("map_indexes", self.map_index)
        present = get_current_context()["ti"]
        return present.xcom_pull(wanted, self.dag_id, key, run_id=self.run_id, default=default, **options)

    def __repr__(self) -> str:
        index = "" if self.map_index < 0 else f" [{self.map_index}]"
        return f"<TaskInstance {self.dag_id}.{self.task_id} {self.run_id}{index}: {self.state}>"


class RunTasks:
    """What `dag_run` can tell about its tasks and about the runs before it."""

    dag_id: str
    run_id: str
    state: str

    @property
    def logical_date(self) -> Any:
        raise NotImplementedError

    def get_task_instances(self, state: Any = None, session: Any = None) -> list[ToldTask]:
        """All tasks of the run, or those in one state or in one of several."""
        wanted = None if state is None else {state} if isinstance(state, str) else set(state)
        told = engine_for("look at a run").ask("get_tasks", run_key=self.run_id, workflow=self.dag_id)
        found = [ToldTask(one, self.dag_id, self.run_id, self.logical_date) for one in told]
        return [one for one in found if wanted is None or one.state in wanted]

    def get_task_instance(self, task_id: str, session: Any = None, *, map_index: int = -1) -> ToldTask | None:
        """The task with that id; None if the run has none."""
        every = self.get_task_instances()
        return next((one for one in every if (one.task_id, one.map_index) == (task_id, map_index)), None)

    def get_state(self) -> str:
        return self.state


class TasksBefore:
    """What `ti` can tell about the same task, and about its DAG, in earlier runs."""

    dag_id: str
    dag_run: Any
    map_index: int
    _engine: Engine

    def get_previous_dagrun(self, state: Any = None, session: Any = None) -> Any:
        """The run before by logical date, or the last before it in that state; None if there is none."""
        try:
            told = self._engine.ask("get_previous_run", states=states_of(state))
        except LookupError:
            return None
        return self.dag_run.another(told)

    def get_previous_ti(
        self,
        state: Any = None,
        logical_date: datetime | None = None,
        map_index: int | None = None,
        session: Any = None,
    ) -> ToldTask | None:
        """The same task in the last run before this one (or before a date) that has it, or has it in that state."""
        wish: dict[str, Any] = {"states": states_of(state)}
        if logical_date is not None:
            wish["before"] = logical_date.isoformat()
        if map_index is not None:
            wish["map_index"] = map_index
        try:
            told = self._engine.ask("get_previous_task", **wish)
        except LookupError:
            return None
        return ToldTask(told, self.dag_id, told["run_key"], date_of(told["logical_time"]))

    @property
    def previous_ti(self) -> ToldTask | None:
        return self.get_previous_ti()

    @property
    def previous_ti_success(self) -> ToldTask | None:
        return self.get_previous_ti("success")

    def get_previous_logical_date(self, state: Any = None, session: Any = None) -> Any:
        run = self.get_previous_dagrun(state)
        return None if run is None else run.logical_date

    get_previous_execution_date = get_previous_logical_date

    def get_previous_start_date(self, state: Any = None, session: Any = None) -> Any:
        """When the same task began in the run before, or in the last one in which it had that state."""
        before = self.get_previous_ti(state)
        return None if before is None else before.start_date

    @property
    def previous_start_date_success(self) -> Any:
        return self.get_previous_start_date("success")
