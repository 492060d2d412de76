"""The run and the try, as user code sees them: `dag_run` and `ti` of the context, and the context itself."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from headrace.authoring.asking import Engine
from headrace.authoring.dag.context import Context, get_current_context
from headrace.authoring.dag.context_values import MAKERS
from headrace.authoring.dag.dates import to_pendulum
from headrace.authoring.dag.other_runs import OtherRuns, state_name
from headrace.authoring.dag.pulling import Pull
from headrace.authoring.dag.state_stores import has_assets
from headrace.authoring.dag.told_tasks import RunTasks, TasksBefore, date_of
from headrace.authoring.dag.try_attributes import TryAttributes
from headrace.authoring.dag.values import decode_value, length_of
from headrace.authoring.dag.xcom import has_custom_backend, serialized
from headrace.authoring.dag.xcom_arg import RETURN_VALUE


class DagRun(RunTasks):
    """One run of a DAG."""

    def __init__(
        self,
        *,
        dag_id: str,
        run_id: str,
        run_type: str = "manual",
        conf: Mapping[str, Any] | None = None,
        logical_time: datetime | None = None,
        interval: tuple[datetime | None, datetime | None] = (None, None),
        run_after: datetime | None = None,
        started_at: datetime | None = None,
        partition: tuple[str | None, datetime | None] = (None, None),
        dag: Any = None,
    ) -> None:
        self.dag_id = dag_id
        self.dag = dag
        self.run_id = run_id
        self.run_type = run_type
        self.conf = dict(conf or {})
        self.logical_time = logical_time
        self.state = "running"
        self.external_trigger = run_type == "manual"
        self.end_date: Any = None
        self.note: str | None = None
        self.clear_number = 0
        self.partition_key, self._partition_time = partition
        self._interval = interval
        self._run_after = run_after
        self._started_at = started_at

    @property
    def logical_date(self) -> Any:
        return to_pendulum(self.logical_time)

    @property
    def execution_date(self) -> Any:
        return self.logical_date

    @property
    def data_interval_start(self) -> Any:
        return to_pendulum(self._interval[0] or self.logical_time)

    @property
    def data_interval_end(self) -> Any:
        return to_pendulum(self._interval[1] or self.logical_time)

    @property
    def data_interval(self) -> tuple[Any, Any]:
        return self.data_interval_start, self.data_interval_end

    @property
    def partition_date(self) -> Any:
        return to_pendulum(self._partition_time)

    @property
    def is_backfill(self) -> bool:
        return self.run_type == "backfill"

    def get_dag(self) -> Any:
        return self.dag

    def get_previous_dagrun(self, state: Any = None, session: Any = None) -> DagRun | None:
        """The run before by logical date, or the last before it in that state; None if there is none."""
        found: DagRun | None = get_current_context()["ti"].get_previous_dagrun(state)
        return found

    def another(self, told: Mapping[str, Any]) -> DagRun:
        """Another run of the same DAG, as the engine tells it."""
        run = DagRun(
            dag_id=self.dag_id,
            run_id=told["run_key"],
            run_type=told["run_type"],
            conf=told["params"],
            logical_time=date_of(told["logical_time"]),
            interval=(date_of(told["interval_start"]), date_of(told["interval_end"])),
            run_after=date_of(told["run_after"]),
            started_at=date_of(told["started_at"]),
            partition=(told["partition_key"], date_of(told["partition_time"])),
            dag=self.dag,
        )
        run.state, run.end_date = state_name(told["state"]), date_of(told["ended_at"])
        return run

    @property
    def run_after(self) -> Any:
        return to_pendulum(self._run_after)

    @property
    def start_date(self) -> Any:
        return to_pendulum(self._started_at)

    def __repr__(self) -> str:
        return f"<DagRun {self.dag_id} {self.run_id}>"


class TaskInstance(OtherRuns, TasksBefore, TryAttributes):
    """One try of one task, with what it has pushed so far."""

    def __init__(
        self,
        *,
        task: Any,
        dag: Any,
        dag_run: DagRun,
        engine: Engine,
        map_index: int = -1,
        try_number: int = 1,
        max_tries: int = 0,
        first_started_at: datetime | None = None,
        waited_seconds: float = 0.0,
        started_at: datetime | None = None,
    ) -> None:
        self.task = task
        self.dag = dag
        self.task_id: str = task.task_id
        self.dag_id = dag_run.dag_id
        self.dag_run: DagRun = dag_run
        self.run_id = dag_run.run_id
        self.map_index = map_index
        self.try_number = try_number
        self.max_tries = max_tries
        self.state = "running"
        self.end_date: Any = None
        self.duration: float | None = None
        self.started_at = started_at or datetime.now(UTC)
        self.first_started_at = first_started_at or self.started_at
        """When the first try of the series began: retries and reschedules do not change it, clearing does."""
        self.waited_seconds = waited_seconds
        """How long that was before this execution began."""
        self.pushed: dict[str, bytes] = {}
        self.lengths: dict[str, int] = {}
        self.followed: tuple[str, ...] | None = None
        """The direct downstream tasks that go on, if this task has decided that."""
        self.skipped: tuple[str, ...] = ()
        """The tasks that this task has decided to skip."""
        self._values: dict[str, Any] = {}
        self._engine = engine

    @property
    def engine(self) -> Engine:
        return self._engine

    @property
    def start_date(self) -> Any:
        return to_pendulum(self.started_at)

    @property
    def logical_date(self) -> Any:
        return self.dag_run.logical_date

    execution_date = logical_date

    @property
    def log(self) -> logging.Logger:
        return logging.getLogger("airflow.task")

    def get_first_reschedule_date(self, context: Any = None) -> Any:
        """When the series of looks began; None if this is the first one."""
        return to_pendulum(self.first_started_at) if self.reschedule_count() else None

    def reschedule_count(self) -> int:
        """How often this try has asked to be called again; one that has just begun need not ask."""
        return int(self._engine.ask("count_reschedules")) if self.waited_seconds else 0

    def get_dagrun(self, session: Any = None) -> DagRun:
        return self.dag_run

    def __repr__(self) -> str:
        index = "" if self.map_index < 0 else f" [{self.map_index}]"
        return f"<TaskInstance {self.dag_id}.{self.task_id} {self.run_id}{index}>"

    def xcom_push(self, key: str, value: Any) -> None:
        """Store a named result; it reaches the other tasks when this one ends."""
        if not key:
            raise ValueError("expected the name of a result to be a word, got an empty one")
        self.pushed[key] = serialized(value, key, self)
        self._values[key] = value
        length = length_of(value)
        if length is None:
            self.lengths.pop(key, None)
        else:
            self.lengths[key] = length

    def xcom_pull(
        self,
        task_ids: str | Iterable[str] | None = None,
        dag_id: str | None = None,
        key: str | None = RETURN_VALUE,
        include_prior_dates: bool = False,
        session: Any = None,
        *,
        map_indexes: int | Iterable[int] | None = None,
        default: Any = None,
        run_id: str | None = None,
    ) -> Any:
        """The result of one task, or a list of results of several; a mapped task gives those of its instances.

        `key=None` takes any result, `include_prior_dates` looks into earlier runs, too.
        """
        pull = Pull(self, self._engine, self._values, key, default, dag_id, run_id, include_prior_dates)
        if task_ids is None:
            return pull.nearest(map_indexes)
        if isinstance(task_ids, str):
            return pull.one(task_ids, map_indexes)
        return pull.several(list(task_ids), map_indexes)

    def forget(self, key: str | None) -> None:
        """Take back what was pushed under this name, or everything."""
        for name in list(self.pushed) if key is None else [key]:
            for kept in (self.pushed, self.lengths, self._values):
                kept.pop(name, None)

    def length_of(self, task_id: str) -> int:
        """How many elements another task's result has to map over. LookupError if there is no result."""
        return int(self._engine.ask("get_length", task=task_id))

    def element_of(self, task_id: str, index: int) -> tuple[str, Any]:
        """One element of another task's result: ("element", x), ("pair", (key, x)), or ("whole", all of it)."""
        if has_custom_backend():
            # What is stored is the backend's own, so that only it knows of elements.
            return "whole", self.xcom_pull(task_id)
        ((kind, value),) = self._engine.ask("get_element", task=task_id, index=index).items()
        return kind, (value[0], decode_value(value[1])) if kind == "pair" else decode_value(value)

    def get_template_context(self) -> Context:
        return task_context(self)


def task_context(instance: TaskInstance) -> Context:
    """The context of a try. Dates, lookups and params are made when they are first read."""
    run, task, dag = instance.dag_run, instance.task, instance.dag
    values = {
        "dag": dag,
        "dag_run": run,
        "run_id": run.run_id,
        "task": task,
        "ti": instance,
        "task_instance": instance,
        "map_index": instance.map_index,
        "try_number": instance.try_number,
        "map_index_template": task.settings.map_index_template,
        "inlets": task.settings.inlets,
        "outlets": task.settings.outlets,
    }
    assets = has_assets(task.settings.inlets) or has_assets(task.settings.outlets)
    return Context(values, MAKERS[run.logical_time is not None, assets])


def context_environment(context: Mapping[str, Any]) -> dict[str, str]:
    """What the task's process and its children see of the context in their environment."""
    run: DagRun = context["dag_run"]
    settings = context["task"].settings
    email = settings.email or ""
    environment = {
        "AIRFLOW_CTX_DAG_ID": run.dag_id,
        "AIRFLOW_CTX_TASK_ID": context["task"].task_id,
        "AIRFLOW_CTX_TRY_NUMBER": str(context["ti"].try_number),
        "AIRFLOW_CTX_DAG_RUN_ID": run.run_id,
        "AIRFLOW_CTX_DAG_OWNER": settings.owner,
        "AIRFLOW_CTX_DAG_EMAIL": email if isinstance(email, str) else ",".join(email),
    }
    if "ts" in context:
        environment |= {"AIRFLOW_CTX_LOGICAL_DATE": context["ts"], "AIRFLOW_CTX_EXECUTION_DATE": context["ts"]}
    return environment
