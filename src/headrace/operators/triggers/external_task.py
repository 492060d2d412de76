"""Waiting for runs of other workflows and for tasks in them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection, Sequence
from datetime import datetime
from typing import Any

from headrace.authoring.dag.context import current_engine
from headrace.authoring.dag.other_runs import runs_there, state_name
from headrace.authoring.dag.triggers import BaseTrigger, TriggerEvent

_MODULE = "airflow.providers.standard.triggers.external_task"
_SUCCESS = ("success",)


class WorkflowTrigger(BaseTrigger):
    """Fires when runs of a workflow, or tasks or a group in them, have come to the states that are waited for.

    The runs are given by their ids or by their logical dates. The event says {"status": "success"}, or "failed" or
    "skipped" as soon as one of them is in such a state.
    """

    def __init__(
        self,
        external_dag_id: str,
        run_ids: list[str] | None = None,
        execution_dates: list[datetime] | None = None,
        logical_dates: list[datetime] | None = None,
        external_task_ids: Collection[str] | None = None,
        external_task_group_id: str | None = None,
        failed_states: Collection[str] | None = None,
        skipped_states: Collection[str] | None = None,
        allowed_states: Collection[str] | None = None,
        poke_interval: float = 2.0,
        soft_fail: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.external_dag_id = external_dag_id
        self.run_ids = run_ids
        self.execution_dates = execution_dates
        self.logical_dates = logical_dates or execution_dates
        self.external_task_ids = external_task_ids
        self.external_task_group_id = external_task_group_id
        self.failed_states = failed_states
        self.skipped_states = skipped_states
        self.allowed_states = allowed_states
        self.poke_interval = poke_interval
        self.soft_fail = soft_fail

    def serialize(self) -> tuple[str, dict[str, Any]]:
        arguments = {
            "external_dag_id": self.external_dag_id,
            "run_ids": self.run_ids,
            "logical_dates": self.logical_dates,
            "external_task_ids": _listed(self.external_task_ids),
            "external_task_group_id": self.external_task_group_id,
            "failed_states": _listed(self.failed_states),
            "skipped_states": _listed(self.skipped_states),
            "allowed_states": _listed(self.allowed_states),
            "poke_interval": self.poke_interval,
            "soft_fail": self.soft_fail,
        }
        return f"{_MODULE}.WorkflowTrigger", arguments

    async def run(self) -> AsyncIterator[TriggerEvent]:
        while (status := self._status(await self._look())) is None:
            await asyncio.sleep(self.poke_interval)
        yield TriggerEvent({"status": status})

    def _status(self, runs: Sequence[Collection[str]]) -> str | None:
        """What the states of each run amount to; None: wait on."""
        if any(state in (self.failed_states or ()) for states in runs for state in states):
            return "failed"
        if any(state in (self.skipped_states or ()) for states in runs for state in states):
            return "skipped"
        allowed = self.allowed_states or _SUCCESS
        done = [states for states in runs if states and all(state in allowed for state in states)]
        return "success" if len(done) == len(self.run_ids or self.logical_dates or ()) else None

    async def _look(self) -> list[Collection[str]]:
        """The states in each run that is there; a task that is waited for and not there has none that counts."""
        which: dict[str, Any] = {"workflow": self.external_dag_id, **_runs(self.run_ids, self.logical_dates)}
        if self.external_task_ids is None and self.external_task_group_id is None:
            return [[state_name(run["state"])] for run in await _ask("get_runs", **which)]
        wanted = _listed(self.external_task_ids)
        found = await _ask("get_task_states", **which, tasks=wanted, group=self.external_task_group_id)
        return [_states(run["tasks"], wanted) for run in found]


ExternalTaskTrigger = WorkflowTrigger


class DagStateTrigger(BaseTrigger):
    """Fires when all these runs of a workflow are in one of the states; the event tells the state of each."""

    def __init__(
        self,
        dag_id: str,
        states: list[str],
        run_ids: list[str] | None = None,
        execution_dates: list[datetime] | None = None,
        poll_interval: float = 5.0,
    ) -> None:
        super().__init__()
        self.dag_id = dag_id
        self.states = states
        self.run_ids = run_ids
        self.execution_dates = execution_dates
        self.poll_interval = poll_interval

    def serialize(self) -> tuple[str, dict[str, Any]]:
        arguments = {
            "dag_id": self.dag_id,
            "states": [str(state) for state in self.states],
            "run_ids": self.run_ids,
            "execution_dates": self.execution_dates,
            "poll_interval": self.poll_interval,
        }
        return f"{_MODULE}.DagStateTrigger", arguments

    async def run(self) -> AsyncIterator[TriggerEvent]:
        which = {"workflow": self.dag_id, **_runs(self.run_ids, self.execution_dates)}
        wanted = len(self.run_ids or self.execution_dates or ())
        while len(states := self._matching(await _ask("get_runs", **which))) < wanted:
            await asyncio.sleep(self.poll_interval)
        path, arguments = self.serialize()
        yield TriggerEvent((path, {**arguments, **states}))

    def _matching(self, runs: Sequence[dict[str, Any]]) -> dict[str, str]:
        """Run id → state, for the runs that are in one of the states."""
        states = {run["run_key"]: state_name(run["state"]) for run in runs}
        return {run_id: state for run_id, state in states.items() if state in self.states}


async def _ask(verb: str, **args: Any) -> Any:
    engine = current_engine()
    if engine is None:
        raise RuntimeError("cannot look at other runs here: no trigger is running")
    return await asyncio.to_thread(runs_there, engine, verb, **args)


def _runs(run_ids: list[str] | None, logical_dates: list[datetime] | None) -> dict[str, Any]:
    if run_ids:
        return {"run_keys": run_ids}
    return {"logical_times": [moment.isoformat() for moment in logical_dates or ()]}


def _states(tasks: dict[str, dict[str, int]], wanted: Sequence[str] | None) -> list[str]:
    keys = tasks.keys() if wanted is None else wanted
    return [state_name(state) for key in keys for state in tasks.get(key, {"": 0})]


def _listed(values: Collection[str] | None) -> list[str] | None:
    return None if values is None else [str(value) for value in values]
