"""From a DAG object to the compiled workflow that the engine runs."""

from __future__ import annotations

import functools
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from headrace.authoring.dag.asset_uses import asset_uses_of
from headrace.authoring.dag.being_late import deadlines_of
from headrace.authoring.dag.calling_back import calls_back_of_run, calls_back_of_task
from headrace.authoring.dag.dags import DAG, aware, effective_leaves
from headrace.authoring.dag.deferral import initial_deferral
from headrace.authoring.dag.executor_options import executor_options
from headrace.authoring.dag.operator import DEFAULT_OWNER
from headrace.authoring.dag.order import clamped, effective_weights
from headrace.authoring.dag.schedules import schedule_of
from headrace.authoring.dag.setup_scope import setups_at_a_distance, work_before
from headrace.authoring.dag.timetables import has_partitions
from headrace.authoring.dag.unsupported import warnings_of
from headrace.authoring.dag.weights import PlannedTask, PriorityWeightStrategy
from headrace.authoring.dag.zones import timezone_name
from headrace.definition import (
    NOOP,
    ROOT,
    TRIGGER_RULES,
    Isolation,
    Length,
    Node,
    Past,
    Place,
    Retry,
    Workflow,
    check_workflow,
    invalid_schema,
    schema_problem,
    to_json,
)
from headrace.errors import DefinitionError

_LONGEST_RETRY_DELAY_SECONDS = 86_400.0

# The JSON form leaves out what is at its default, which it recognises by identity.
_NO_RETRY = Node(key="").retry
_TRIGGER_RULES = {rule: rule for rule in TRIGGER_RULES} | {Node(key="").trigger_rule: Node(key="").trigger_rule}


def compile_dag(dag: DAG, root: Path) -> Workflow:
    """The checked definition of one DAG; places are relative to the project's folder."""
    place = _place(dag.place, root)
    workflow = Workflow(
        name=dag.dag_id,
        language="python",
        nodes=(Node(key=ROOT, kind="group", calls_back=calls_back_of_run(dag), place=place), *_nodes(dag, root)),
        timezone=timezone_name(dag.timezone),
        params=_params(dag, place),
        param_schemas=_param_schemas(dag, place),
        schedule=schedule_of(dag, place),
        assets=asset_uses_of(dag),
        has_partitions=has_partitions(dag.schedule),
        max_active_runs=dag.max_active_runs,
        max_active_tasks=dag.max_active_tasks,
        timeout_seconds=None if dag.dagrun_timeout is None else dag.dagrun_timeout.total_seconds(),
        on_timeout="skip",
        deadlines=deadlines_of(dag, place),
        fails_fast=dag.fail_fast,
        max_consecutive_failures=dag.max_consecutive_failed_dag_runs,
        is_paused_at_creation=dag.is_paused_upon_creation is True,
        tags=tuple(sorted(dag.tags)),
        description=dag.description or "",
        display_name=dag.dag_display_name if dag.dag_display_name != dag.dag_id else "",
        doc=dag.doc_md or "",
        owner="" if dag.owner == DEFAULT_OWNER else dag.owner,
        owner_links=dag.owner_links,
        warnings=warnings_of(dag),
        place=place,
    )
    return check_workflow(workflow)


def _nodes(dag: DAG, root: Path) -> list[Node]:
    tasks = dag.task_dict
    weights = effective_weights(
        tasks,
        {key: task.settings.priority_weight for key, task in tasks.items()},
        {key: task.settings.weight_rule for key, task in tasks.items()},
    )
    for key, task in tasks.items():
        if isinstance(task.settings.weight_rule, PriorityWeightStrategy):
            weights[key] = clamped(task.settings.weight_rule.get_weight(PlannedTask(task)))
    deciding = effective_leaves(dag.tasks)
    nodes = [_node(dag, task, root, weights[key], key in deciding) for key, task in tasks.items()]
    needs = setups_at_a_distance(dag.tasks)
    return [_with_needs(dag, node, needs) for node in nodes] if needs else nodes


def _with_needs(dag: DAG, node: Node, needs: dict[str, set[str]]) -> Node:
    is_needed = any(node.key in needed for needed in needs.values())
    return replace(node, needs=_in_file_order(dag, needs.get(node.key, set())), is_needed=is_needed)


def _node(dag: DAG, task: Any, root: Path, priority: int, decides: bool) -> Node:
    settings, labels = task.settings, dag.edge_labels
    operator, isolation = _operator(dag, task)
    _check_after_setup(dag, task, root)
    upstream = _in_file_order(dag, task.upstream_task_ids | work_before(task))
    return Node(
        key=task.task_id,
        parent=ROOT,
        kind="mapped" if task.has_instances else "task",
        upstream=upstream,
        setups=tuple(key for key in upstream if task.is_teardown and dag.task_dict[key].is_setup),
        trigger_rule=_TRIGGER_RULES[task.trigger_rule],
        operator=operator,
        config=_config(task),
        retry=_retry(settings),
        expand=_length(task),
        lockstep="" if task.mapped_group is None else task.mapped_group.group_id,
        decides=decides,
        deferral=None if task.is_mapped else initial_deferral(task),
        isolation=isolation,
        not_before=_own_date(dag, settings, "start_date"),
        not_after=_own_date(dag, settings, "end_date"),
        past=_past(dag, settings),
        cleans_up=task.is_teardown,
        timeout_seconds=None if settings.execution_timeout is None else settings.execution_timeout.total_seconds(),
        priority=priority,
        pool=settings.pool,
        pool_slots=settings.pool_slots,
        queue=settings.queue,
        executor=settings.executor or "",
        executor_options=executor_options(task.task_id, settings.executor_config),
        max_active_per_workflow=settings.max_active_tis_per_dag,
        max_active_per_run=settings.max_active_tis_per_dagrun,
        calls_back=calls_back_of_task(settings),
        place=_place(task.place, root),
        doc=settings.doc_md or settings.doc or settings.doc_rst or settings.doc_yaml or settings.doc_json or "",
        display_name="" if settings.task_display_name in (None, settings.task_id) else settings.task_display_name,
        group=task.task_group.group_id or "",
        edge_labels={key: labels[key, task.task_id] for key in upstream if (key, task.task_id) in labels},
        map_index_template=settings.map_index_template or "",
    )


def _check_after_setup(dag: DAG, task: Any, root: Path) -> None:
    if task.is_teardown or task.trigger_rule == "all_success":
        return
    setup = next((key for key in sorted(task.upstream_task_ids) if dag.task_dict[key].is_setup), None)
    if setup is not None:
        place = _place(task.place, root)
        raise DefinitionError(
            f"task `{task.task_id}` follows the setup `{setup}`, so its trigger rule must be `all_success`,"
            f" got: `{task.trigger_rule}`",
            file=place.file,
            line=place.line,
        )


def _length(task: Any) -> Length | None:
    if task.mapped_group is not None:
        length: Length = task.mapped_group.expansion.length()
        return length
    return task.expansion.length() if task.is_mapped else None


def _in_file_order(dag: DAG, ids: set[str]) -> tuple[str, ...]:
    return tuple(sorted(ids, key=lambda key: dag.task_dict[key].created))


def _operator(dag: DAG, task: Any) -> tuple[str, Isolation]:
    operator_class = task.operator_class if task.is_mapped else type(task)
    name = vars(operator_class).get("operator_name") or operator_class.__name__
    if name == NOOP and not _has_own_work(task):
        return NOOP, "inline"
    # The engine completes a no-op by itself; one with callbacks or outlets must reach a process.
    return ("empty" if name == NOOP else name), _isolation(dag, task)


def _isolation(dag: DAG, task: Any) -> Isolation:
    wanted: Any = task.settings.isolation or dag.isolation
    if wanted is None and not task.is_mapped and task.runs_programs_only and not _has_hooks(dag, task):
        return "programs"
    return wanted or "default"


def _has_hooks(dag: DAG, task: Any) -> bool:
    """Whether the task's process runs code of the user's around the operator, or when it renders its templates."""
    events = ("execute", "success", "failure", "retry", "skipped")
    callbacks = [getattr(task, f"on_{event}_callback") for event in events]
    templates = (dag.user_defined_macros, dag.user_defined_filters, dag.jinja_environment_kwargs)
    return any((*callbacks, *templates, task.pre_execute_hook, task.post_execute_hook, task.retry_policy))


def _has_own_work(task: Any) -> bool:
    settings = task.settings
    return bool(settings.on_execute_callback or settings.on_success_callback or settings.inlets or settings.outlets)


def _config(task: Any) -> dict[str, Any]:
    """What people want to see of a task. Values that are no JSON are left out; code never gets in here."""
    if task.is_mapped:
        fields = {name: task.partial_kwargs.get(name) for name in task.operator_class.shown_fields}
    else:
        fields = {name: getattr(task, name, None) for name in task.shown_fields}
    return {name: value for name, value in fields.items() if isinstance(value, str | int | float | bool)}


def _retry(settings: Any) -> Retry:
    if settings.retries <= 0:
        return _NO_RETRY
    backoff = settings.retry_exponential_backoff
    delay = settings.retry_delay.total_seconds()
    if not backoff:
        return Retry(limit=settings.retries, delay_seconds=delay)
    longest = _LONGEST_RETRY_DELAY_SECONDS
    if settings.max_retry_delay is not None:
        longest = min(longest, settings.max_retry_delay.total_seconds())
    return Retry(
        limit=settings.retries,
        delay_seconds=delay,
        backoff=2.0 if backoff is True else float(backoff),
        jitter=True,
        max_delay_seconds=longest,
    )


def _own_date(dag: DAG, settings: Any, name: str) -> str | None:
    """A date by which a task keeps out of runs of its DAG; None if it has none but the DAG's."""
    given = getattr(settings, name)
    own = aware(datetime.fromisoformat(given) if isinstance(given, str) else given, dag.timezone)
    of_dag: datetime | None = getattr(dag, name)
    if own is None or (of_dag is not None and (own <= of_dag if name == "start_date" else own >= of_dag)):
        return None
    return own.astimezone(UTC).isoformat()


def _past(dag: DAG, settings: Any) -> Past | None:
    if not settings.depends_on_past:
        return None
    start = aware(settings.start_date, dag.timezone) or dag.start_date
    return Past(
        with_downstream=settings.wait_for_downstream,
        ignores_first=settings.ignore_first_depends_on_past,
        # Where every time is caught up, only those that the schedule makes follow each other.
        skips_manual=dag.catchup,
        since=start.astimezone(UTC).isoformat() if dag.catchup and start is not None else None,
        before_skipping=settings.wait_for_past_depends_before_skipping,
    )


def _params(dag: DAG, place: Place) -> dict[str, Any]:
    params = dag.params.dump()
    for name, value in params.items():
        try:
            to_json(value)
        except DefinitionError as error:
            raise DefinitionError(
                f"expected parameter `{name}` of DAG `{dag.dag_id}` to be a JSON value, got: {value!r}",
                file=place.file,
                line=place.line,
            ) from error
    return params


def _param_schemas(dag: DAG, place: Place) -> dict[str, dict[str, Any]]:
    schemas = dag.params.schemas()
    for name, schema in schemas.items():
        problem = invalid_schema(schema)
        if problem is None and dag.schedule is not None:
            # Nobody gives a scheduled run its parameters, so the defaults must do.
            default = dag.params.get_param(name)
            problem = schema_problem(default.value, schema) if default.has_value else "it has no default"
        if problem is not None:
            raise DefinitionError(
                f"parameter `{name}` of DAG `{dag.dag_id}` is not valid: {problem}", file=place.file, line=place.line
            )
    return schemas


def _place(written: tuple[str, int], root: Path) -> Place:
    file, line = written
    return Place(file=_relative(file, root), line=line)


@functools.lru_cache(maxsize=64)
def _relative(file: str, root: Path) -> str:
    path = Path(file)
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else file
