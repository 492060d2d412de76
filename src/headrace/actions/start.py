"""Start an attempt of a workflow for a time: the first one of a run, or another one under a name of its own."""

from __future__ import annotations

from typing import Any, NamedTuple

from headrace.actions.finding import find_workflow_of
from headrace.actions.params import settled
from headrace.actions.sessions import logical_time
from headrace.clock import Clock, iso, to_micros
from headrace.definition import Workflow
from headrace.errors import NotFoundError, StateError
from headrace.store import (
    AttemptPlan,
    AttemptRow,
    Definitions,
    NewRun,
    News,
    RunRow,
    Store,
    Transaction,
    WorkflowRow,
    add_attempt,
    create_run,
    current_version_of,
    end_idle_pause,
    find_archive,
    find_project,
    get_run,
    list_attempts,
    run_for,
    start_queued_runs,
    version_in_archive,
)
from headrace.timetable import Slot, timetable_for


class Wanted(NamedTuple):
    """What is to be started."""

    project: str
    workflow: str
    session: str
    """A date, or a word such as `daily`, by the workflow's clock."""
    revision: str | None = None
    """A pushed revision. None: the newest."""
    attempt_name: str = ""
    params: dict[str, Any] = {}


class Started(NamedTuple):
    run: RunRow
    attempt: AttemptRow


class _Rehearsed(Exception):
    """Carries what would have been started out of a transaction that is to leave nothing."""

    def __init__(self, started: Started) -> None:
        self.started = started


def start(store: Store, clock: Clock, wanted: Wanted, *, is_dry: bool = False) -> Started:
    """Start it, or in a dry run only say what would be started. Raises StateError if it was started before."""
    try:
        return store.transact(lambda tx: _start(tx, clock, wanted, is_dry=is_dry))
    except _Rehearsed as rehearsed:
        return rehearsed.started


def _start(tx: Transaction, clock: Clock, wanted: Wanted, *, is_dry: bool) -> Started:
    now = to_micros(clock.now())
    row = find_workflow_of(tx, wanted.project, wanted.workflow, may_be_gone=wanted.revision is not None)
    version_id = version_of_revision(tx, row, wanted.revision)
    workflow = tx.shared(Definitions).version(tx, version_id).workflow
    wanted = wanted._replace(params=settled(workflow.language, wanted.params))
    slot = _slot(workflow, wanted.session, clock)
    run_id = run_for(tx, row.id, to_micros(slot.logical_time))
    if run_id is None:
        run_id = _first_attempt(tx, row, version_id, slot, wanted, now)
    else:
        _another_attempt(tx, row, version_id, run_id, wanted, now)
    start_queued_runs(tx, row.id, now)
    run = get_run(tx, run_id)
    assert run is not None, "found or inserted a moment ago"
    if run.state == "queued":
        tx.tell(News.PLANS)
    started = Started(run, list_attempts(tx, run_id)[0])
    if is_dry:
        raise _Rehearsed(started)
    return started


def version_of_revision(tx: Transaction, row: WorkflowRow, revision: str | None) -> int:
    """The version of a workflow that a pushed revision has; without one, the newest."""
    if revision is None:
        return current_version_of(tx, row.id)
    archive = find_archive(tx, find_project(tx, row.project), revision)
    found = version_in_archive(tx, row.id, archive.id)
    if found is None:
        raise NotFoundError(f"revision `{revision}` of project `{row.project}` has no workflow `{row.name}`")
    return found


def _slot(workflow: Workflow, session: str, clock: Clock) -> Slot:
    at = logical_time(workflow, session, clock.now()).replace(microsecond=0)
    if workflow.schedule is None:
        return Slot(at, at, at, at)
    return timetable_for(workflow.schedule, workflow.timezone).manual(at)


def _first_attempt(tx: Transaction, row: WorkflowRow, version_id: int, slot: Slot, wanted: Wanted, now: int) -> int:
    new = NewRun(
        workflow_id=row.id,
        key=f"manual__{slot.logical_time.isoformat()}",
        logical_at=to_micros(slot.logical_time),
        interval_start=to_micros(slot.interval_start),
        interval_end=to_micros(slot.interval_end),
        params=wanted.params,
        version_id=version_id,
        attempt_name=wanted.attempt_name,
    )
    run_id = create_run(tx, new, now)
    if run_id is None:
        raise StateError(
            f"workflow `{row.name}` of project `{row.project}` already has a run for {iso(slot.logical_time)}",
            hint="`headrace retry` runs it again",
        )
    return run_id


def _another_attempt(tx: Transaction, row: WorkflowRow, version_id: int, run_id: int, wanted: Wanted, now: int) -> None:
    attempts = list_attempts(tx, run_id)
    same = next((one for one in attempts if one.name == wanted.attempt_name), None)
    if same is not None or not wanted.attempt_name:
        found = same or attempts[0]
        called = f" called `{found.name}`" if found.name else ""
        raise StateError(
            f"workflow `{row.name}` of project `{row.project}` was already started for this time:"
            f" attempt {found.label}{called} is `{found.state}`",
            hint=f"`headrace retry {found.label}`, or `--retry NAME` for another attempt",
        )
    plan = AttemptPlan(params=wanted.params)
    end_idle_pause(tx, run_id)
    add_attempt(tx, run_id, row.id, None, wanted.attempt_name, now, version_id, plan)
