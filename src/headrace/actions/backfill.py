"""Runs for times in the past that a schedule names: created together, started in order within a limit of their own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import islice, takewhile
from typing import Any, Literal, NamedTuple, get_args

from headrace.actions.finding import find_backfill, find_workflow
from headrace.actions.params import settled
from headrace.actions.sessions import logical_time
from headrace.clock import Clock, iso, to_micros
from headrace.definition import Workflow
from headrace.errors import StateError, UsageError
from headrace.store import (
    BackfillRow,
    Definitions,
    NewBackfill,
    NewRun,
    News,
    Store,
    Transaction,
    add_attempt,
    adopt_run,
    cancel_attempt,
    create_run,
    current_version_of,
    get_backfill,
    insert_backfill,
    lock_for_backfill,
    mark_backfill_canceled,
    queued_attempts_of_backfill,
    runs_at,
    set_backfill_paused,
    start_queued_runs,
)
from headrace.timetable import Slot, timetable_for

Reprocess = Literal["none", "failed", "completed"]
REPROCESS: tuple[Reprocess, ...] = get_args(Reprocess)
"""Of the times that have a run already: leave them, run the failed ones again, run all that have ended again."""
MOST_RUNS = 10_000
_FAILED = ("failed", "canceled")


class Filled(NamedTuple):
    """What a backfill does about one time."""

    slot: Slot
    outcome: Literal["created", "again", "exists", "in_flight"]
    """again: its run is run once more · exists: its run has ended and stays · in_flight: its run has not ended."""
    run_id: int | None = None
    """None for a run that a dry run would create."""


class Backfilled(NamedTuple):
    backfill: BackfillRow | None
    """None for a dry run, or if there was nothing to do."""
    times: list[Filled]


@dataclass(frozen=True, slots=True, kw_only=True)
class BackfillRequest:
    """What somebody asks for. Times are dates, or words such as `daily`, by the workflow's clock."""

    workflow: str
    start: str
    end: str | None = None
    """The last time, included; without it `count` says how many."""
    count: int | None = None
    reprocess: Reprocess = "none"
    is_backwards: bool = False
    max_active_runs: int | None = 10
    """How many of the runs may be active at once, whatever the workflow says of its others; None: no limit."""
    params: dict[str, Any] = field(default_factory=dict)
    attempt_name: str = ""
    is_dry_run: bool = False


def create_backfill(store: Store, clock: Clock, request: BackfillRequest) -> Backfilled:
    """Create a run for each time of the workflow's schedule in a range; a time is left out if it is not over yet."""

    def work(tx: Transaction) -> Backfilled:
        row = find_workflow(tx, request.workflow)
        workflow = tx.shared(Definitions).version(tx, current_version_of(tx, row.id)).workflow
        now = clock.now()
        slots = scheduled_slots(workflow, request, now)
        others = lock_for_backfill(tx, row.id)
        if others is not None and not request.is_dry_run:
            raise StateError(
                f"workflow `{workflow.name}` already has a backfill that is going on: {others}",
                hint=f"`headrace backfill cancel {others}` stops it",
            )
        planned = _outcomes(tx, row.id, slots, request.reprocess)
        if request.is_dry_run or not any(one.outcome in ("created", "again") for one in planned):
            return Backfilled(None, planned)
        given = replace(request, params=settled(workflow.language, request.params))
        return _create(tx, row.id, given, planned, to_micros(now))

    return store.transact(work)


def scheduled_slots(workflow: Workflow, request: BackfillRequest, now: datetime) -> list[Slot]:
    """The times of a schedule that a request is about, in the order in which they are to run."""
    timetable = None if workflow.schedule is None else timetable_for(workflow.schedule, workflow.timezone)
    if timetable is None or not timetable.is_periodic:
        raise UsageError(
            f"workflow `{workflow.name}` has no schedule with times that can be filled in",
            hint="`headrace trigger` starts a single run",
        )
    start = logical_time(workflow, request.start, now)
    end = None if request.end is None else logical_time(workflow, request.end, now)
    if end is not None and end < start:
        raise UsageError(f"the backfill ends before it begins: {iso(start)} is later than {iso(end)}")
    wanted = request.count if request.count is not None else MOST_RUNS + 1
    slots = list(islice(_until(timetable.slots_from(start), end, now), wanted))
    if request.count is not None and len(slots) < request.count:
        raise UsageError(
            f"the schedule of `{workflow.name}` has only {len(slots)} times from {iso(start)} until now,"
            f" expected {request.count}"
        )
    if len(slots) > MOST_RUNS:
        raise UsageError(
            f"the backfill of `{workflow.name}` would have more than {MOST_RUNS} runs", hint="split it into several"
        )
    return slots[::-1] if request.is_backwards else slots


def _until(slots: Iterator[Slot], end: datetime | None, now: datetime) -> Iterator[Slot]:
    return takewhile(lambda slot: slot.run_at <= now and (end is None or slot.about <= end), slots)


def _outcomes(tx: Transaction, workflow_id: int, slots: list[Slot], reprocess: Reprocess) -> list[Filled]:
    known = runs_at(tx, workflow_id, [to_micros(slot.logical_time) for slot in slots]) if slots else {}
    return [_outcome(slot, known.get(to_micros(slot.logical_time)), reprocess) for slot in slots]


def _outcome(slot: Slot, known: tuple[int, str] | None, reprocess: Reprocess) -> Filled:
    if known is None:
        return Filled(slot, "created")
    run_id, state = known
    if state in ("queued", "running"):
        return Filled(slot, "in_flight", run_id)
    is_again = reprocess == "completed" or (reprocess == "failed" and state in _FAILED)
    return Filled(slot, "again" if is_again else "exists", run_id)


def _create(tx: Transaction, workflow_id: int, request: BackfillRequest, planned: list[Filled], now: int) -> Backfilled:
    times = sorted(to_micros(one.slot.logical_time) for one in planned)
    backfill_id = insert_backfill(
        tx,
        NewBackfill(
            workflow_id=workflow_id,
            from_at=times[0],
            to_at=times[-1],
            reprocess=request.reprocess,
            is_backwards=request.is_backwards,
            max_active_runs=request.max_active_runs,
            params=request.params,
        ),
        now,
    )
    filled = [_fill(tx, workflow_id, backfill_id, order, one, request, now) for order, one in enumerate(planned)]
    start_queued_runs(tx, workflow_id, now)
    tx.tell(News.PLANS)
    return Backfilled(get_backfill(tx, backfill_id), filled)


def _fill(
    tx: Transaction, workflow_id: int, backfill_id: int, order: int, one: Filled, request: BackfillRequest, now: int
) -> Filled:
    if one.outcome == "again":
        assert one.run_id is not None, "its run was found"
        adopt_run(tx, one.run_id, backfill_id, order, request.params)
        add_attempt(tx, one.run_id, workflow_id, None, request.attempt_name, now)
        return one
    if one.outcome != "created":
        return one
    new = _new_run(workflow_id, one.slot)._replace(
        params=request.params, backfill_id=backfill_id, backfill_order=order, attempt_name=request.attempt_name
    )
    run_id = create_run(tx, new, now)
    # Somebody has made a run for this time since we looked.
    return one._replace(run_id=run_id) if run_id is not None else one._replace(outcome="in_flight")


def _new_run(workflow_id: int, slot: Slot) -> NewRun:
    due = to_micros(slot.run_at)
    if slot.partition_key is not None:
        return NewRun(
            workflow_id,
            key=f"backfill__{slot.run_at.isoformat()}__{slot.partition_key}",
            type="backfill",
            run_after=due,
            partition_key=slot.partition_key,
            partition_at=to_micros(slot.about),
            slot_at=to_micros(slot.logical_time),
        )
    return NewRun(
        workflow_id,
        key=f"backfill__{slot.run_at.isoformat()}",
        type="backfill",
        logical_at=to_micros(slot.logical_time),
        interval_start=to_micros(slot.interval_start),
        interval_end=to_micros(slot.interval_end),
        run_after=due,
    )


def pause_backfill(store: Store, backfill_id: int) -> BackfillRow:
    """No more of its runs start; those that run go on."""
    return store.transact(lambda tx: _set_paused(tx, backfill_id, True))


def unpause_backfill(store: Store, clock: Clock, backfill_id: int) -> BackfillRow:
    """Its runs start again, as many as its limit allows."""

    def work(tx: Transaction) -> BackfillRow:
        row = _set_paused(tx, backfill_id, False)
        start_queued_runs(tx, row.workflow_id, to_micros(clock.now()))
        return find_backfill(tx, backfill_id)

    return store.transact(work)


def cancel_backfill(store: Store, clock: Clock, backfill_id: int) -> BackfillRow:
    """Its runs that have not started are canceled; those that run go on to their end."""

    def work(tx: Transaction) -> BackfillRow:
        row = find_backfill(tx, backfill_id)
        if not row.is_active:
            raise StateError(f"cannot cancel backfill {backfill_id}: it has ended")
        now = to_micros(clock.now())
        for attempt_id in queued_attempts_of_backfill(tx, backfill_id):
            cancel_attempt(tx, attempt_id, now)
        mark_backfill_canceled(tx, backfill_id, now)
        return find_backfill(tx, backfill_id)

    return store.transact(work)


def _set_paused(tx: Transaction, backfill_id: int, is_paused: bool) -> BackfillRow:
    row = find_backfill(tx, backfill_id)
    if not row.is_active:
        raise StateError(f"cannot {'pause' if is_paused else 'unpause'} backfill {backfill_id}: it has ended")
    if is_paused and row.canceled_at is not None:
        raise StateError(f"cannot pause backfill {backfill_id}: it was canceled")
    set_backfill_paused(tx, backfill_id, is_paused)
    return find_backfill(tx, backfill_id)
