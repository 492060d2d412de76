"""Start a run of a workflow now, whatever its schedule says."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from headrace.actions.finding import find_workflow
from headrace.actions.params import check_params
from headrace.actions.sessions import slot_of
from headrace.clock import Clock, iso, to_micros
from headrace.definition import Workflow
from headrace.errors import StateError
from headrace.store import (
    ORDINARY,
    AttemptPlan,
    Definitions,
    NewRun,
    RunRow,
    Store,
    Transaction,
    create_run,
    current_version_of,
    get_run,
    latest_attempt,
    start_attempt,
    start_queued_runs,
)


def trigger(
    store: Store,
    clock: Clock,
    name: str,
    *,
    params: dict[str, Any] | None = None,
    session: str | None = None,
    run_key: str | None = None,
) -> RunRow:
    """Create a run of the workflow with this name and start it, unless its limits or a pause make it wait."""

    def work(tx: Transaction) -> RunRow:
        row = find_workflow(tx, name)
        workflow = tx.shared(Definitions).version(tx, current_version_of(tx, row.id)).workflow
        return create_manual_run(tx, row.id, workflow, clock.now(), params or {}, session, run_key)

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
) -> RunRow:
    """Insert the run and start it if it may start. `workflow` gives the clock and the schedule for its times.

    A private run starts at once, whatever limits and pauses say, and beside any other unless it is not repeatable.
    """
    check_params(workflow, params)
    slot = slot_of(workflow, session, now)
    new = NewRun(
        workflow_id=workflow_id,
        key=run_key or f"manual__{now.isoformat()}",
        logical_at=to_micros(slot.logical_time),
        interval_start=to_micros(slot.interval_start),
        interval_end=to_micros(slot.interval_end),
        params=params,
        is_repeatable=is_private if is_repeatable is None else is_repeatable,
        plan=plan,
    )
    run_id = create_run(tx, new, to_micros(now))
    if run_id is None:
        raise StateError(
            f"workflow `{workflow.name}` already has a run `{new.key}` or one for {iso(slot.logical_time)}",
            hint="`headrace clear` or `headrace retry` runs it again",
        )
    if is_private:
        start_attempt(tx, latest_attempt(tx, run_id), to_micros(now))
    else:
        start_queued_runs(tx, workflow_id, to_micros(now))
    tx.should_notify = True
    run = get_run(tx, run_id)
    assert run is not None, "inserted a moment ago"
    return run
