"""Headrace runs workflows that are written as Python DAGs or as Digdag projects.

This is the public face for authors of Python DAGs: names are imported from here when they are first used, so that the
engine's own rooms, which live below this package, do not pay for them.
"""

from __future__ import annotations

import importlib
from typing import Any

_HOMES = {
    "headrace.authoring.dag": (
        "DAG",
        "BaseOperator",
        "Connection",
        "Context",
        "DagRunState",
        "EdgeModifier",
        "Label",
        "Param",
        "ParamsDict",
        "TaskGroup",
        "TaskInstanceState",
        "TriggerRule",
        "Variable",
        "WeightRule",
        "XComArg",
        "chain",
        "chain_linear",
        "cross_downstream",
        "dag",
        "get_current_context",
        "literal",
        "setup",
        "task",
        "task_group",
        "teardown",
    ),
    "headrace.authoring.dag.exceptions": (
        "AirflowException",
        "AirflowFailException",
        "AirflowSensorTimeout",
        "AirflowSkipException",
        "AirflowTaskTimeout",
    ),
    "headrace.operators.bash": ("BashOperator",),
    "headrace.operators.branch": ("BaseBranchOperator", "BranchPythonOperator", "ShortCircuitOperator"),
    "headrace.operators.empty": ("EmptyOperator",),
    "headrace.operators.branch_by_time": (
        "BranchDateTimeOperator",
        "BranchDayOfWeekOperator",
        "LatestOnlyOperator",
    ),
    "headrace.operators.dig_workflow": ("DigWorkflowOperator",),
    "headrace.operators.email_operator": ("EmailOperator",),
    "headrace.operators.external_python": ("BranchExternalPythonOperator", "ExternalPythonOperator"),
    "headrace.operators.python": ("PythonOperator",),
    "headrace.operators.sensors.bash": ("BashSensor",),
    "headrace.operators.sensors.external_task": ("ExternalTaskMarker", "ExternalTaskSensor"),
    "headrace.operators.sensors.file": ("FileSensor",),
    "headrace.operators.sensors.moments": (
        "DateTimeSensor",
        "DateTimeSensorAsync",
        "DayOfWeekSensor",
        "TimeDeltaSensor",
        "TimeDeltaSensorAsync",
        "TimeSensor",
        "TimeSensorAsync",
        "WaitSensor",
    ),
    "headrace.operators.sensors.poking": ("BaseSensorOperator", "PokeReturnValue", "poke_mode_only"),
    "headrace.operators.sensors.python": ("PythonSensor",),
    "headrace.operators.trigger_dag_run": ("TriggerDagRunOperator",),
    "headrace.operators.virtualenv": ("BranchPythonVirtualenvOperator", "PythonVirtualenvOperator"),
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}

__all__ = sorted([*_HOME_OF, "__version__"])


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return importlib.import_module("headrace.release").VERSION
    if name not in _HOME_OF:
        raise AttributeError(f"module `headrace` has no attribute `{name}`")
    value = globals()[name] = getattr(importlib.import_module(_HOME_OF[name]), name)
    return value


def __dir__() -> list[str]:
    return [*globals(), *__all__]
