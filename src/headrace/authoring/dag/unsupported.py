"""Arguments that change how Airflow runs a DAG and that the engine does not act on: accepted, but never silently."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from msgspec.structs import replace

from headrace.authoring.dag.asset_timetables import AssetTriggeredTimetable
from headrace.authoring.dag.asset_uses import assets_in
from headrace.authoring.dag.assets import Asset
from headrace.authoring.dag.executor_options import executor_warnings
from headrace.authoring.dag.schedules import timetable_of
from headrace.definition import Workflow

OF_DAG = ("access_control", "allowed_run_types", "disable_bundle_versioning", "rerun_with_latest_version")
_OF_EXECUTORS = "`executor` of task "
OF_TASK = ("executor", "resources", "run_as_user")
SILENT = ("allow_nested_operators", "default_view", "full_filepath", "orientation")
"""Nothing runs in another way without them, so that nobody is warned; the guide names them."""


def warnings_of(dag: Any) -> tuple[str, ...]:
    """One sentence for each argument that has no effect."""
    of_executors = [
        sentence
        for key, task in dag.task_dict.items()
        for sentence in executor_warnings(key, task.settings.executor_config)
    ]
    return (*_of_dag(dag), *_of_tasks(dag), *of_executors, *_of_assets(dag))


def _of_dag(dag: Any) -> Iterator[str]:
    for name in OF_DAG:
        if getattr(dag, name):
            yield f"`{name}` of DAG `{dag.dag_id}` has no effect yet"
    has_sla = any(task.settings.sla is not None for task in dag.task_dict.values())
    if dag.sla_miss_callback and not has_sla:
        yield f"`sla_miss_callback` of DAG `{dag.dag_id}` has no effect: no task has an `sla`"
    if has_sla and dag.schedule is None:
        yield f"the `sla` of tasks of DAG `{dag.dag_id}` has no effect: only scheduled runs are checked"


def _of_tasks(dag: Any) -> Iterator[str]:
    for name in OF_TASK:
        tasks = [key for key, task in dag.task_dict.items() if getattr(task.settings, name, None)]
        if tasks:
            others = f" and {len(tasks) - 1} more" if len(tasks) > 1 else ""
            why = ": tasks run on the executor of their agent" if name == "executor" else " yet"
            yield f"`{name}` of task `{tasks[0]}`{others} has no effect{why}"


def once_per_file(workflows: Iterable[Workflow]) -> Iterator[Workflow]:
    """The workflows of a file; what is to be said about executors is said for the first one only."""
    is_said = False
    for workflow in workflows:
        others = tuple(text for text in workflow.warnings if not text.startswith(_OF_EXECUTORS))
        yield workflow if not is_said else replace(workflow, warnings=others)
        is_said = is_said or len(others) < len(workflow.warnings)


def _of_assets(dag: Any) -> Iterator[str]:
    uses = [value for task in dag.task_dict.values() for value in (*task.settings.outlets, *task.settings.inlets)]
    timetable = timetable_of(dag)
    scheduled = [timetable.asset_condition] if isinstance(timetable, AssetTriggeredTimetable) else []
    named = {one.name: one for one in assets_in([*scheduled, *uses]) if isinstance(one, Asset)}
    for name, asset in named.items():
        if asset.access_control is not None:
            yield f"`access_control` of asset `{name}` has no effect: there are no teams here"
