"""Runs of other DAGs and the tasks in them, as the task that asks sees them: in Airflow's words."""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any

from headrace.authoring.asking import Engine
from headrace.authoring.dag.context import current_engine

_log = logging.getLogger("airflow.task")
_IN_AIRFLOW = {"canceled": "failed"}
"""A run or task that was stopped has no word of its own there."""

Dates = Sequence[datetime] | None
Ids = Collection[str] | None


def engine_for(what: str) -> Engine:
    """The way to the engine; only a running task has one."""
    engine = current_engine()
    if engine is None:
        raise RuntimeError(f"cannot {what} here: no task is running")
    return engine


def state_name(state: str) -> str:
    """The state of a run or of a task as Airflow calls it."""
    return _IN_AIRFLOW.get(state, state)


def runs_there(engine: Engine, verb: str, **which: Any) -> list[dict[str, Any]]:
    """What the engine tells about runs of another DAG; a DAG that is not there (yet) has none."""
    try:
        runs: list[dict[str, Any]] = engine.ask(verb, **which)
    except LookupError as error:
        _log.warning("%s", error)
        return []
    return runs


class OtherRuns:
    """What `ti` can tell about other DAGs."""

    _engine: Engine

    def run_states(self, dag_id: str, logical_dates: Dates = None, run_ids: Ids = None) -> dict[str, str]:
        """Run id → state, for those of the runs that are there."""
        runs = runs_there(self._engine, "get_runs", workflow=dag_id, **_which(logical_dates, run_ids))
        return {run["run_key"]: state_name(run["state"]) for run in runs}

    def task_state_counts(
        self,
        dag_id: str,
        logical_dates: Dates = None,
        run_ids: Ids = None,
        task_ids: Ids = None,
        task_group_id: str | None = None,
    ) -> dict[str, dict[str, dict[str, int]]]:
        """Run id → task id → state → how many, for those of the runs that are there; instances count one by one."""
        runs = runs_there(
            self._engine,
            "get_task_states",
            workflow=dag_id,
            tasks=None if task_ids is None else list(task_ids),
            group=task_group_id,
            **_which(logical_dates, run_ids),
        )
        return {run["run_key"]: {key: _renamed(counts) for key, counts in run["tasks"].items()} for run in runs}

    def get_dr_count(self, dag_id: str, logical_dates: Dates = None, run_ids: Ids = None, states: Ids = None) -> int:
        """How many of the runs are there, or are in one of the states."""
        found = self.run_states(dag_id, logical_dates, run_ids).values()
        return sum(states is None or state in states for state in found)

    def get_ti_count(
        self,
        dag_id: str,
        map_index: int | None = None,
        task_ids: Ids = None,
        task_group_id: str | None = None,
        logical_dates: Dates = None,
        run_ids: Ids = None,
        states: Ids = None,
    ) -> int:
        """How many tasks of the runs are there, or are in one of the states; instances count one by one."""
        runs = self.task_state_counts(dag_id, logical_dates, run_ids, task_ids, task_group_id).values()
        counts = [count for tasks in runs for count in tasks.values()]
        return sum(n for count in counts for state, n in count.items() if states is None or state in states)

    def get_task_states(
        self,
        dag_id: str,
        map_index: int | None = None,
        task_ids: Ids = None,
        task_group_id: str | None = None,
        logical_dates: Dates = None,
        run_ids: Ids = None,
    ) -> dict[str, dict[str, str]]:
        """Run id → task id → state; a mapped task is as far as the instance that is least far."""
        runs = self.task_state_counts(dag_id, logical_dates, run_ids, task_ids, task_group_id)
        return {run: {key: _least(count) for key, count in tasks.items()} for run, tasks in runs.items()}

    def get_dagrun_state(self, dag_id: str, run_id: str) -> str:
        """The state of one run. LookupError if there is none."""
        return state_name(self._engine.ask("get_run", workflow=dag_id, run_key=run_id)["state"])


def _which(logical_dates: Dates, run_ids: Ids) -> dict[str, Any]:
    which: dict[str, Any] = {}
    if logical_dates is not None:
        which["logical_times"] = [date.isoformat() for date in logical_dates]
    if run_ids is not None:
        which["run_keys"] = list(run_ids)
    return which


def _renamed(counts: dict[str, int]) -> dict[str, int]:
    renamed: dict[str, int] = {}
    for state, count in counts.items():
        renamed[state_name(state)] = renamed.get(state_name(state), 0) + count
    return renamed


def _least(counts: dict[str, int]) -> str:
    others = sorted(state for state in counts if state not in ("success", "skipped"))
    return others[0] if others else min(counts, key=lambda state: state == "skipped")
