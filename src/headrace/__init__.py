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
        "AirflowSkipException",
        "AirflowTaskTimeout",
    ),
    "headrace.operators.bash": ("BashOperator",),
    "headrace.operators.branch": ("BaseBranchOperator", "BranchPythonOperator", "ShortCircuitOperator"),
    "headrace.operators.empty": ("EmptyOperator",),
    "headrace.operators.python": ("PythonOperator",),
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}

__all__ = sorted([*_HOME_OF, "__version__"])


def __getattr__(name: str) -> Any:
    if name == "__version__":
        # Reading package metadata costs more than most commands do.
        from importlib.metadata import version

        return version("headrace")
    if name not in _HOME_OF:
        raise AttributeError(f"module `headrace` has no attribute `{name}`")
    value = globals()[name] = getattr(importlib.import_module(_HOME_OF[name]), name)
    return value


def __dir__() -> list[str]:
    return [*globals(), *__all__]
