"""Answers tasks that ask for other workflows: starting runs of them, and how these are doing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from headrace.clock import Clock, from_micros, iso, to_micros
from headrace.errors import NotFoundError, StateError, UsageError
from headrace.handoff import TaskRequest
from headrace.store import (
    Definitions,
    NewRun,
    News,
    RunRow,
    Store,
    Transaction,
    WorkflowRow,
    add_attempt,
    clear_tasks,
    create_run,
    current_version_of,
    get_run,
    is_within,
    latest_attempt,
    list_tasks,
    newest_run,
    runs_by_key,
    runs_by_time,
    start_attempt,
    start_queued_runs,
    task_counts,
    version_of_attempt,
    workflow_for,
)
from headrace.timetable import manual_slot, timetable_for

NOW = "now"
_SLOT = ("logical_time", "run_at", "interval_start", "interval_end")
_CROWD = 1000
"""How many runs may ask for one and the same moment before somebody is told that it is taken."""


class RunDesk:
    """The verbs about runs. Each is called with the asking task's request and the question's arguments."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self.adopt: Callable[[int, int], None] | None = None
        """Called with run and attempt of what a private run starts; nobody else would serve it, so nobody limits it."""
        self.discover: Callable[[], bool] | None = None
        """Called when a workflow is not there; True: look again, there may be more of them now."""

    @property
    def verbs(self) -> dict[str, Callable[..., Any]]:
        verbs: dict[str, Callable[..., Any]] = {
            "get_workflow": self._get_workflow,
            "start_run": self._start_run,
            "retry_run": self._retry_run,
            "get_run": self._get_run,
            "get_runs": self._get_runs,
            "get_task_states": self._get_task_states,
            "get_following_slot": self._get_following_slot,
        }
        return {name: self._discovering(verb) for name, verb in verbs.items()}

    def _discovering(self, verb: Callable[..., Any]) -> Callable[..., Any]:
        def answer(request: TaskRequest, **args: Any) -> Any:
            if self.discover is not None and self._is_found_elsewhere(request, **args):
                self.discover()
            try:
                return verb(request, **args)
            except NotFoundError:
                if self.discover is None or not self.discover():
                    raise
            return verb(request, **args)

        return answer

    def _is_found_elsewhere(
        self, request: TaskRequest, workflow: str | None = None, project: str | None = None, **_: Any
    ) -> bool:
        """Whether only another project is known to have the workflow, while the task's own is not all known yet."""
        if workflow is None or project is not None:
            return False
        with self._store.read() as tx, suppress(NotFoundError, UsageError):
            return workflow_for(tx, workflow, None, request.run.project).project != request.run.project
        return False

    # ---- asking ----------------------------------------------------------------------------------------------------

    def _get_workflow(self, request: TaskRequest, workflow: str, project: str | None = None) -> dict[str, Any]:
        with self._store.read() as tx:
            row = workflow_for(tx, workflow, project, request.run.project)
            nodes = tx.shared(Definitions).version(tx, current_version_of(tx, row.id)).nodes
        tasks = [node.key for node in nodes.values() if node.parent is not None]
        return {"workflow": row.name, "project": row.project, "is_paused": bool(row.is_paused), "tasks": tasks}

    def _get_run(
        self,
        request: TaskRequest,
        run_id: int | None = None,
        workflow: str | None = None,
        project: str | None = None,
        run_key: str | None = None,
        logical_time: str | None = None,
    ) -> dict[str, Any]:
        with self._store.read() as tx:
            if run_id is not None:
                run = get_run(tx, run_id)
                runs = [] if run is None else [run]
            else:
                row = workflow_for(tx, workflow or request.run.workflow, project, request.run.project)
                keys, times = _listed(run_key), _listed(logical_time)
                runs = newest_run(tx, row.id) if keys is None and times is None else _find(tx, row.id, keys, times)
        if not runs:
            raise NotFoundError("there is no such run")
        return _told(runs[0])

    def _get_runs(
        self,
        request: TaskRequest,
        workflow: str,
        project: str | None = None,
        run_keys: Sequence[str] | None = None,
        logical_times: Sequence[str] | None = None,
        states: Sequence[str] | None = None,
    ) -> list[dict[str, Any]]:
        with self._store.read() as tx:
            row = workflow_for(tx, workflow, project, request.run.project)
            runs = _find(tx, row.id, run_keys, logical_times)
        return [_told(run) for run in runs if states is None or run.state in states]

    def _get_task_states(
        self,
        request: TaskRequest,
        workflow: str,
        project: str | None = None,
        tasks: Sequence[str] | None = None,
        group: str | None = None,
        run_keys: Sequence[str] | None = None,
        logical_times: Sequence[str] | None = None,
    ) -> list[dict[str, Any]]:
        with self._store.read() as tx:
            row = workflow_for(tx, workflow, project, request.run.project)
            runs = _find(tx, row.id, run_keys, logical_times)
            return [{**_told(run), "tasks": _states(tx, run, tasks, group)} for run in runs]

    def _get_following_slot(self, request: TaskRequest) -> dict[str, Any] | None:
        with self._store.read() as tx:
            version_id = version_of_attempt(tx, request.run.attempt_id)
            workflow = tx.shared(Definitions).version(tx, version_id).workflow
        if workflow.schedule is None or request.run.logical_time is None:
            return None
        timetable = timetable_for(workflow.schedule, workflow.timezone)
        slot = timetable.following(timetable.slot_at(request.run.logical_time))
        return None if slot is None else {name: iso(getattr(slot, name)) for name in _SLOT}

    # ---- starting --------------------------------------------------------------------------------------------------

    def _start_run(
        self,
        request: TaskRequest,
        workflow: str,
        project: str | None = None,
        params: dict[str, Any] | None = None,
        run_key: str | None = None,
        logical_time: str | None = NOW,
        run_after: str | None = None,
        clears_existing: bool = False,
    ) -> dict[str, Any]:
        is_free = run_key is None and logical_time == NOW

        def work(tx: Transaction) -> tuple[RunRow, bool]:
            row, now = workflow_for(tx, workflow, project, request.run.project), self._clock.now()
            for later in range(_CROWD if is_free else 1):
                wish = _new_run(tx, row, now + later * timedelta(microseconds=1), logical_time, run_after)
                wish = wish._replace(key=run_key or wish.key, params=params or {}, is_repeatable=self.adopt is not None)
                run_id = create_run(tx, wish, to_micros(now))
                if run_id is not None:
                    return self._begin(tx, run_id, row.id, now), True
            return self._existing(tx, row, wish, now, clears_existing), False

        run, is_new = self._store.transact(work)
        return self._adopted(run, is_new)

    def _retry_run(
        self, request: TaskRequest, run_id: int, attempt_name: str = "", is_resuming: bool = True
    ) -> dict[str, Any]:
        def work(tx: Transaction) -> RunRow:
            run, now = get_run(tx, run_id), self._clock.now()
            if run is None:
                raise NotFoundError(f"there is no run {run_id}")
            resumes = run.attempt_id if is_resuming else None
            add_attempt(tx, run.id, run.workflow_id, resumes, attempt_name, to_micros(now))
            return self._begin(tx, run.id, run.workflow_id, now)

        return self._adopted(self._store.transact(work), is_new=True)

    def _begin(self, tx: Transaction, run_id: int, workflow_id: int, now: datetime) -> RunRow:
        if self.adopt is None:
            start_queued_runs(tx, workflow_id, to_micros(now))
        else:
            start_attempt(tx, latest_attempt(tx, run_id), to_micros(now))
        run = get_run(tx, run_id)
        assert run is not None, "inserted a moment ago"
        if run.state == "queued":
            tx.tell(News.PLANS)
        return run

    def _existing(self, tx: Transaction, row: WorkflowRow, wish: NewRun, now: datetime, clears: bool) -> RunRow:
        times = [] if wish.logical_at is None else [wish.logical_at]
        runs = runs_by_key(tx, row.id, [wish.key]) or runs_by_time(tx, row.id, times)
        if not runs:
            raise StateError(f"workflow `{row.name}` already has a run `{wish.key}`")
        run = runs[0]
        ids = [task.id for task in list_tasks(tx, run.attempt_id) if task.parent_id is not None]
        if clears and ids:
            clear_tasks(tx, run.attempt_id, ids, to_micros(now))
        return get_run(tx, run.id) or run

    def _adopted(self, run: RunRow, is_new: bool) -> dict[str, Any]:
        if self.adopt is not None:
            self.adopt(run.id, run.attempt_id)
        return {**_told(run), "is_new": is_new}


def _new_run(
    tx: Transaction, row: WorkflowRow, now: datetime, logical_time: str | None, run_after: str | None
) -> NewRun:
    workflow = tx.shared(Definitions).version(tx, current_version_of(tx, row.id)).workflow
    due = None if run_after is None else to_micros(_instant(run_after))
    if logical_time is None:
        return NewRun(row.id, key=f"manual__{now.isoformat()}", run_after=due)
    at = now if logical_time == NOW else _instant(logical_time)
    slot = manual_slot(workflow, at)
    return NewRun(
        row.id,
        key=f"manual__{slot.logical_time.isoformat()}",
        logical_at=to_micros(slot.logical_time),
        interval_start=to_micros(slot.interval_start),
        interval_end=to_micros(slot.interval_end),
        run_after=due,
    )


def _find(tx: Transaction, workflow_id: int, keys: Sequence[str] | None, times: Sequence[str] | None) -> list[RunRow]:
    """By key or by logical time; with both, those that fit both."""
    if keys is None and times is None:
        raise UsageError("expected the keys or the logical times of the runs that are meant, got neither")
    if times is None:
        return runs_by_key(tx, workflow_id, keys or ())
    runs = runs_by_time(tx, workflow_id, [to_micros(_instant(time)) for time in times])
    return runs if keys is None else [run for run in runs if run.key in keys]


def _states(
    tx: Transaction, run: RunRow, tasks: Sequence[str] | None, group: str | None
) -> Mapping[str, Mapping[str, int]]:
    counts = task_counts(tx, run.attempt_id)
    if group is not None:
        nodes = tx.shared(Definitions).version(tx, version_of_attempt(tx, run.attempt_id)).nodes
        return {key: states for key, states in counts.items() if is_within(key, group, nodes)}
    return counts if tasks is None else {key: counts[key] for key in tasks if key in counts}


def _told(run: RunRow) -> dict[str, Any]:
    """A run in words that cross a process boundary; instants are ISO 8601."""
    return {
        "run_id": run.id,
        "run_key": run.key,
        "project": run.project,
        "workflow": run.workflow,
        "type": run.type,
        "state": run.state,
        "reason": run.reason,
        "logical_time": _text(run.logical_at),
        "run_after": _text(run.run_after),
        "started_at": _text(run.started_at),
        "ended_at": _text(run.ended_at),
        "params": msgspec.json.decode(run.params),
        "attempt_id": run.attempt_id,
        "attempt_number": run.attempt_number,
        "is_paused": bool(run.is_paused),
    }


def _text(micros: int | None) -> str | None:
    return None if micros is None else iso(from_micros(micros))


def _listed(value: str | None) -> list[str] | None:
    return None if value is None else [value]


def _instant(text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(f"expected an ISO 8601 instant such as `2026-02-03T04:05:06Z`, got: `{text}`") from None
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment
