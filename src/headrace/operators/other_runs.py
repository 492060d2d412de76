"""How tasks of Python DAGs ask about runs of other workflows, in Airflow's words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from headrace.authoring.dag.context import Engine, current_engine

_IN_AIRFLOW = {"canceled": "failed"}
"""A run or task that was stopped has no word of its own there."""


def engine_for(what: str) -> Engine:
    """The way to the engine; only a running task has one."""
    engine = current_engine()
    if engine is None:
        raise RuntimeError(f"cannot {what} here: no task is running")
    return engine


def state_name(state: str) -> str:
    """The state of a run or of a task as Airflow calls it."""
    return _IN_AIRFLOW.get(state, state)


def run_states(dag_id: str, dates: Sequence[datetime]) -> list[set[str]]:
    """For each date that has a run: its state."""
    runs = engine_for("look at other runs").ask("get_runs", workflow=dag_id, logical_times=_texts(dates))
    return [{state_name(run["state"])} for run in runs]


def task_states(
    dag_id: str, dates: Sequence[datetime], tasks: Iterable[str] | None = None, group: str | None = None
) -> list[dict[str, set[str]]]:
    """For each date that has a run: the states of its tasks, or of those that are named or in a group."""
    found = engine_for("look at other runs").ask(
        "get_task_states",
        workflow=dag_id,
        logical_times=_texts(dates),
        tasks=None if tasks is None else list(tasks),
        group=group,
    )
    return [{key: {state_name(state) for state in states} for key, states in run["tasks"].items()} for run in found]


def _texts(dates: Sequence[datetime]) -> list[str]:
    return [date.isoformat() for date in dates]
