"""The DAG, and `@dag` for functions that build one."""

from __future__ import annotations

import functools
import importlib
import inspect
import itertools
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any

from headrace.authoring.dag import installation_defaults, scope
from headrace.authoring.dag.dag_arguments import check_arguments, text_or_file
from headrace.authoring.dag.exceptions import FailFastDagInvalidTriggerRule, TaskNotFound
from headrace.authoring.dag.group import TaskGroup
from headrace.authoring.dag.naming import IdPool, check_id
from headrace.authoring.dag.node import Callback, TaskNode, callbacks, written_at
from headrace.authoring.dag.order import topological_order
from headrace.authoring.dag.params import DagParam, Param, ParamsDict
from headrace.authoring.dag.rules import TriggerRule
from headrace.authoring.dag.subset import partial_dag
from headrace.authoring.dag.taskflow import TaskDecorator
from headrace.authoring.dag.xcom_arg import NOTSET
from headrace.authoring.signatures import signature_of
from headrace.errors import did_you_mean

_FAIL_FAST_RULES = (TriggerRule.ALL_SUCCESS, TriggerRule.ALL_DONE_SETUP_SUCCESS)
_creation = itertools.count()

# Named, not imported: a run for a test builds on everything, this room included.
_TESTING = "headrace.testing.dag_run"
_COMMAND = "headrace.testing.dag_command"


class DAG:
    """A workflow: tasks, their order and their schedule. Tasks made in its `with` block belong to it."""

    def __init__(
        self,
        dag_id: str,
        *,
        description: str | None = None,
        schedule: Any = NOTSET,
        start_date: datetime | None = None,
        end_date: datetime | None = None,
        catchup: bool = installation_defaults.CATCHUP,
        default_args: Mapping[str, Any] | None = None,
        params: Mapping[str, Any] | None = None,
        max_active_tasks: int = installation_defaults.MAX_ACTIVE_TASKS,
        max_active_runs: int = installation_defaults.MAX_ACTIVE_RUNS,
        max_consecutive_failed_dag_runs: int = 0,
        dagrun_timeout: timedelta | None = None,
        deadline: Any = None,
        sla_miss_callback: Any = None,
        on_success_callback: Callback | list[Callback] | None = None,
        on_failure_callback: Callback | list[Callback] | None = None,
        tags: Collection[str] | None = None,
        owner_links: Mapping[str, str] | None = None,
        doc_md: str | None = None,
        is_paused_upon_creation: bool | None = None,
        template_searchpath: str | Iterable[str] | None = None,
        template_undefined: Any = None,
        user_defined_macros: Mapping[str, Any] | None = None,
        user_defined_filters: Mapping[str, Callable[..., Any]] | None = None,
        jinja_environment_kwargs: Mapping[str, Any] | None = None,
        render_template_as_native_obj: bool = False,
        access_control: Any = None,
        fail_fast: bool = False,
        auto_register: bool = True,
        dag_display_name: str | None = None,
        allowed_run_types: Any = None,
        disable_bundle_versioning: bool | None = None,
        rerun_with_latest_version: bool | None = None,
        isolation: str | None = None,
        schedule_interval: Any = NOTSET,
        timetable: Any = NOTSET,
        concurrency: int | None = None,
        fail_stop: bool = False,
        default_view: str | None = None,
        orientation: str | None = None,
        full_filepath: str | None = None,
        **unknown: Any,
    ) -> None:
        for name in unknown:
            hint = did_you_mean(name, inspect.signature(DAG).parameters)
            raise TypeError(f"DAG `{dag_id}` has no argument `{name}`" + (f", {hint}" if hint else ""))
        if default_args is not None and not isinstance(default_args, Mapping):
            raise TypeError(f"expected `default_args` of DAG `{dag_id}` to be a dict, got: {default_args!r}")
        if isinstance(tags, str):
            raise TypeError(f"expected `tags` of DAG `{dag_id}` to be a list of texts, got the text: {tags!r}")
        if isolation not in (None, "process", "reuse"):
            raise ValueError(f"expected `isolation` of DAG `{dag_id}` to be process or reuse, got: {isolation!r}")
        self.dag_id = check_id("dag id", dag_id)
        self.dag_display_name = dag_display_name or dag_id
        self.description = description
        self.schedule = _first_given(schedule, schedule_interval, timetable)
        self.default_args = dict(default_args or {})
        self.params = ParamsDict(params)
        self.params.update(self.default_args.pop("params", None) or {})
        first = _instant(start_date or self.default_args.get("start_date"))
        self.timezone: tzinfo = UTC if first is None or first.tzinfo is None else first.tzinfo
        self.start_date = aware(first, self.timezone)
        self.end_date = aware(_instant(end_date or self.default_args.get("end_date")), self.timezone)
        self.catchup = catchup
        self.max_active_tasks = max_active_tasks if concurrency is None else concurrency
        self.max_active_runs = max_active_runs
        self.max_consecutive_failed_dag_runs = max_consecutive_failed_dag_runs
        self.dagrun_timeout = dagrun_timeout
        self.deadline = deadline
        self.sla_miss_callback = sla_miss_callback
        self.on_success_callback = callbacks(on_success_callback)
        self.on_failure_callback = callbacks(on_failure_callback)
        self.tags = set(tags or ())
        self.owner_links = dict(owner_links or {})
        self.doc_md = None if doc_md is None else text_or_file(doc_md, written_at()[0])
        if is_paused_upon_creation is None and installation_defaults.PAUSED_AT_CREATION:
            is_paused_upon_creation = True
        self.is_paused_upon_creation = is_paused_upon_creation
        self.template_searchpath = (
            [template_searchpath] if isinstance(template_searchpath, str) else template_searchpath
        )
        self.template_undefined = template_undefined
        self.user_defined_macros = user_defined_macros
        self.user_defined_filters = user_defined_filters
        self.jinja_environment_kwargs = jinja_environment_kwargs
        self.render_template_as_native_obj = render_template_as_native_obj
        self.access_control = access_control
        self.fail_fast = fail_fast or fail_stop
        self.auto_register = auto_register
        self.allowed_run_types = allowed_run_types
        self.disable_bundle_versioning = disable_bundle_versioning
        self.rerun_with_latest_version = rerun_with_latest_version
        self.isolation = isolation

        self.created = next(_creation)
        self.place = written_at()
        self.fileloc = self.place[0]
        self.ids = IdPool()
        self.edge_labels: dict[tuple[str, str], str] = {}
        self._tasks: dict[str, Any] = {}
        self.task_group = TaskGroup.root_of(self)
        check_arguments(self)
        self._check_schedule()

    def _check_schedule(self) -> None:
        if self.schedule == "@continuous" and self.max_active_runs > 1:
            raise ValueError(f"DAG `{self.dag_id}` runs @continuous, which needs `max_active_runs=1`")
        needs_start = isinstance(self.schedule, str) and self.schedule != "@once"
        if self.catchup and needs_start and self.start_date is None:
            raise ValueError(f"DAG `{self.dag_id}` has `catchup=True`, which needs a start_date")

    @property
    def task_dict(self) -> dict[str, Any]:
        return self._tasks

    @property
    def tasks(self) -> list[Any]:
        return list(self._tasks.values())

    @property
    def task_ids(self) -> list[str]:
        return list(self._tasks)

    @property
    def roots(self) -> list[Any]:
        return [task for task in self._tasks.values() if not task.upstream_task_ids]

    @property
    def leaves(self) -> list[Any]:
        return [task for task in self._tasks.values() if not task.downstream_task_ids]

    @property
    def owner(self) -> str:
        return ", ".join(dict.fromkeys(task.settings.owner for task in self._tasks.values()))

    @property
    def folder(self) -> str:
        return self.fileloc.rpartition("/")[0]

    @property
    def task_group_dict(self) -> dict[str, TaskGroup]:
        """All groups of this DAG by their full id."""
        found: dict[str, TaskGroup] = {}
        pending: list[Any] = [self.task_group]
        while pending:
            group = pending.pop()
            if group.group_id is not None:
                found[group.group_id] = group
            pending.extend(child for child in group.children.values() if isinstance(child, TaskGroup))
        return found

    @property
    def task(self) -> TaskDecorator:
        """`@dag.task`: like `@task`, for tasks of this DAG."""
        return TaskDecorator(dag=self)

    def has_task(self, task_id: str) -> bool:
        return task_id in self._tasks

    def has_task_group(self, group_id: str) -> bool:
        return group_id in self.task_group_dict

    def get_task(self, task_id: str) -> Any:
        """The task with that id; TaskNotFound if there is none."""
        task = self._tasks.get(task_id)
        if task is None:
            hint = did_you_mean(task_id, self._tasks)
            raise TaskNotFound(f"DAG `{self.dag_id}` has no task `{task_id}`" + (f", {hint}" if hint else ""))
        return task

    def __getitem__(self, key: str) -> Any:
        groups = self.task_group_dict
        return groups[key] if key in groups else self.get_task(key)

    def __contains__(self, task_id: str) -> bool:
        return task_id in self._tasks

    def add_task(self, task: TaskNode) -> None:
        """Take a task in. It can belong to one DAG only."""
        if task.dag is not None and task.dag is not self:
            raise ValueError(f"task `{task.task_id}` already belongs to DAG `{task.dag.dag_id}`")
        if self.fail_fast and task.trigger_rule not in _FAIL_FAST_RULES and not task.is_teardown:
            raise FailFastDagInvalidTriggerRule(
                f"DAG `{self.dag_id}` has `fail_fast`, so task `{task.task_id}` cannot have the trigger rule"
                f" `{task.trigger_rule}`"
            )
        if self._tasks.get(task.task_id) is task:
            return
        self.ids.claim("task id", task.task_id)
        self._tasks[task.task_id] = task
        task.dag = self
        if task.task_group is None:
            task.task_group = self.task_group
            self.task_group.add(task)

    def add_tasks(self, tasks: Iterable[TaskNode]) -> None:
        for task in tasks:
            self.add_task(task)

    def topological_ids(self) -> list[str]:
        """Task ids so that each comes after everything it waits for."""
        return topological_order(self._tasks)

    def topological_sort(self) -> tuple[Any, ...]:
        return tuple(self._tasks[task_id] for task_id in self.topological_ids())

    def param(self, name: str, default: Any = NOTSET) -> DagParam:
        """A reference to one of this DAG's parameters."""
        return DagParam(name, default)

    def partial_subset(
        self,
        task_ids: str | Iterable[str],
        include_downstream: bool = False,
        include_upstream: bool = True,
        include_direct_upstream: bool = False,
    ) -> DAG:
        """A copy with only some tasks, by ids or by a pattern in their ids, and with those around them."""
        part: DAG = partial_dag(
            self,
            task_ids,
            downstream=include_downstream,
            upstream=include_upstream,
            direct_upstream=include_direct_upstream,
        )
        return part

    def take_tasks(self, group: TaskGroup, ids: Iterable[str]) -> None:
        """Have the tasks of this root group, in the order of these ids, and no others."""
        found = {task.task_id: task for task in group.iter_tasks()}
        self.task_group = group
        self._tasks = {key: found[key] for key in ids}

    def set_dependency(self, upstream_task_id: str, downstream_task_id: str) -> None:
        self.get_task(upstream_task_id).set_downstream(self.get_task(downstream_task_id))

    def test(
        self,
        run_after: datetime | None = None,
        logical_date: Any = NOTSET,
        run_conf: Mapping[str, Any] | None = None,
        conn_file_path: str | None = None,
        variable_file_path: str | None = None,
        use_executor: bool = False,
        mark_success_pattern: Any = None,
        *,
        execution_date: datetime | None = None,
        session: Any = None,
    ) -> Any:
        """Run this DAG once in this process, on a store of its own; returns the run with the states of its tasks."""
        given = run_after if logical_date is NOTSET else logical_date
        return importlib.import_module(_TESTING).run_dag(
            self,
            run_conf=run_conf,
            logical_date=execution_date or given,
            conn_file_path=conn_file_path,
            variable_file_path=variable_file_path,
            mark_success_pattern=mark_success_pattern,
        )

    def cli(self) -> None:
        """Make a command of the file that this is called in: `python flow.py test`."""
        sys.exit(importlib.import_module(_COMMAND).dag_command(self))

    def __enter__(self) -> DAG:
        scope.enter_dag(self)
        return self

    def __exit__(self, *exc_info: object) -> None:
        scope.leave_dag()

    def __repr__(self) -> str:
        return f"<DAG: {self.dag_id}>"


def dag(dag_id: Any = "", **options: Any) -> Any:
    """Turn a function into a maker of DAGs: `@dag` or `@dag(schedule="@daily")`. Its arguments become parameters."""
    if callable(dag_id):
        return _dag_maker(dag_id, {})
    if dag_id:
        options["dag_id"] = dag_id
    return lambda function: _dag_maker(function, options)


def _dag_maker(function: Callable[..., Any], options: Mapping[str, Any]) -> Callable[..., DAG]:
    signature = signature_of(function)

    @functools.wraps(function)
    def make(*args: Any, **kwargs: Any) -> DAG:
        bound = signature.bind_partial(*args, **kwargs)
        bound.apply_defaults()
        built = DAG(**{"dag_id": function.__name__, "doc_md": function.__doc__, **options})
        references = {name: _as_param(built, name, bound.arguments) for name in signature.parameters}
        with built:
            function(**references)
        return built

    return make


def _as_param(built: DAG, name: str, arguments: Mapping[str, Any]) -> DagParam:
    value = arguments.get(name, NOTSET)
    if value is not NOTSET:
        built.params[name] = value
    elif name not in built.params:
        built.params[name] = Param()
    default = value.value if isinstance(value, Param) else value
    return DagParam(name, default)


def _first_given(*values: Any) -> Any:
    return next((value for value in values if value is not NOTSET), None)


def _instant(value: Any) -> datetime | None:
    if value is None or isinstance(value, datetime):
        return value
    return datetime.fromisoformat(value)


def aware(instant: datetime | None, zone: tzinfo) -> datetime | None:
    """The instant; one without a time zone is meant in this one."""
    if instant is None or instant.tzinfo is not None:
        return instant
    return instant.replace(tzinfo=zone)


def effective_leaves(tasks: Sequence[TaskNode]) -> set[str]:
    """Ids of the tasks that decide how a run ends: the last ones, where cleaning up does not count."""
    ignorable = {task.task_id for task in tasks if task.is_teardown and not task.on_failure_fail_dagrun}
    found = {task.task_id for task in tasks if task.task_id not in ignorable and task.downstream_task_ids <= ignorable}
    return found or {task.task_id for task in tasks if not task.downstream_task_ids}
