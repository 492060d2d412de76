"""Start a run of a workflow now, whatever its schedule says."""

from __future__ import annotations

import re
import secrets
from datetime import datetime
from typing import Any

from headrace.actions.finding import find_workflow
from headrace.actions.params import check_params, settled
from headrace.actions.sessions import NO_TIME, slot_of
from headrace.actions.told_times import told_slot
from headrace.clock import Clock, from_micros, iso, to_micros
from headrace.definition import Workflow
from headrace.errors import StateError, UsageError
from headrace.store import (
    ORDINARY,
    AttemptPlan,
    Definitions,
    NewRun,
    News,
    RunRow,
    Store,
    Transaction,
    Version,
    create_run,
    current_version_of,
    get_run,
    latest_attempt,
    run_for,
    start_attempt,
    start_queued_runs,
)
from headrace.timetable import KeyMistake, Slot, time_of_partition

_KEY = re.compile(r"[A-Za-z0-9_.~:+-]+")
_OTHER_TYPES = ("scheduled__", "backfill__", "asset_triggered__")


def trigger(
    store: Store,
    clock: Clock,
    name: str,
    *,
    params: dict[str, Any] | None = None,
    session: str | None = None,
    run_key: str | None = None,
    note: str | None = None,
    partition_key: str | None = None,
) -> RunRow:
    """Create a run of the workflow with this name and start it, unless its limits or a pause make it wait.

    A run for a partition is for no time, unless `session` says so.
    """
    if run_key is not None:
        _check_key(run_key)
    with store.read() as tx:
        version = _current(tx, find_workflow(tx, name).id)
    now = clock.now()
    session = NO_TIME if session is None and partition_key is not None else session
    told = told_slot(version, session, now)

    def work(tx: Transaction) -> RunRow:
        row = find_workflow(tx, name)
        workflow = _current(tx, row.id).workflow
        slot = told or slot_of(workflow, session, now)
        return _create(tx, row.id, workflow, now, params or {}, slot, run_key, note=note, partition_key=partition_key)

    return store.transact(work)


def create_manual_run(
    tx: Transaction,
    workflow_id: int,
    workflow: Workflow,
    now: datetime,
    params: dict[str, Any],
    session: str | None,
    run_key: str | None = None,
    *,
    is_private: bool = False,
    is_repeatable: bool | None = None,
    plan: AttemptPlan = ORDINARY,
    partition_key: str | None = None,
) -> RunRow:
    """Insert the run and start it if it may start. `workflow` gives the clock and the schedule for its times.

    A private run starts at once, whatever limits and pauses say, and beside any other unless it is not repeatable.
    """
    slot = slot_of(workflow, session, now)
    return _create(
        tx,
        workflow_id,
        workflow,
        now,
        params,
        slot,
        run_key,
        is_private=is_private,
        is_repeatable=is_repeatable,
        plan=plan,
        partition_key=partition_key,
    )


def _create(
    tx: Transaction,
    workflow_id: int,
    workflow: Workflow,
    now: datetime,
    params: dict[str, Any],
    slot: Slot | None,
    run_key: str | None,
    *,
    is_private: bool = False,
    is_repeatable: bool | None = None,
    plan: AttemptPlan = ORDINARY,
    note: str | None = None,
    partition_key: str | None = None,
) -> RunRow:
    params = settled(workflow.language, params)
    check_params(workflow, params)
    about = None if partition_key is None else _time_of(workflow, partition_key)
    new = NewRun(
        workflow_id=workflow_id,
        key=run_key or f"manual__{now.isoformat()}" + ("" if slot else f"_{secrets.token_hex(4)}"),
        logical_at=None if slot is None else to_micros(slot.logical_time),
        interval_start=None if slot is None else to_micros(slot.interval_start),
        interval_end=None if slot is None else to_micros(slot.interval_end),
        params=params,
        is_repeatable=is_private if is_repeatable is None else is_repeatable,
        plan=plan,
        note=note,
        partition_key=partition_key,
        partition_at=None if about is None else to_micros(about),
    )
    run_id = create_run(tx, new, to_micros(now))
    if run_id is None:
        raise _taken(tx, workflow, new)
    if is_private:
        start_attempt(tx, latest_attempt(tx, run_id), to_micros(now))
    else:
        start_queued_runs(tx, workflow_id, to_micros(now))
    run = get_run(tx, run_id)
    assert run is not None, "inserted a moment ago"
    if run.state == "queued":
        tx.tell(News.PLANS)
    return run


def _taken(tx: Transaction, workflow: Workflow, new: NewRun) -> StateError:
    """What to say if there is a run for this time, or one of this name."""
    other = None if new.logical_at is None else run_for(tx, new.workflow_id, new.logical_at)
    run = None if other is None else get_run(tx, other)
    if new.logical_at is None or run is None:
        hint = "`headrace clear` or `headrace retry` runs it again"
        return StateError(f"workflow `{workflow.name}` already has a run `{new.key}`", hint=hint)
    again = f"`headrace retry {run.id}{' --all' if run.state == 'success' else ''}` runs it again"
    return StateError(
        f"workflow `{workflow.name}` already has a run for {iso(from_micros(new.logical_at))}:"
        f" run {run.id} is `{run.state}`",
        hint=f"`headrace why {run.id}` says what it does" if run.is_active else again,
    )


def _time_of(workflow: Workflow, partition_key: str) -> datetime | None:
    try:
        return time_of_partition(workflow, partition_key)
    except KeyMistake as mistake:
        raise UsageError(str(mistake)) from None


def _current(tx: Transaction, workflow_id: int) -> Version:
    return tx.shared(Definitions).version(tx, current_version_of(tx, workflow_id))


def _check_key(key: str) -> None:
    if _KEY.fullmatch(key) is None or ".." in key:
        raise UsageError(f"expected a run's name to be made of letters, digits and `_.~:+-`, got: `{key}`")
    if key.startswith(_OTHER_TYPES):
        raise UsageError(f"a run that is started by hand cannot be called `{key}`: such names are for other runs")
