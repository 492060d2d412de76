"""Starts the runs of due schedules, each exactly once however many schedulers there are."""

from __future__ import annotations

import logging
from datetime import datetime, timedelta
from functools import partial

from headrace.clock import to_micros
from headrace.definition import Workflow
from headrace.errors import DefinitionError
from headrace.scheduler.event_runs import start_for_events
from headrace.scheduler.planning import Plan, plan
from headrace.store import (
    Definitions,
    NewRun,
    Occupation,
    ScheduleRow,
    Store,
    Transaction,
    create_run,
    has_due_schedules,
    lock_due_schedules,
    move_schedules,
    occupations,
    start_queued_runs,
)
from headrace.timetable import Slot

_log = logging.getLogger("headrace.scheduler")

BATCHES_PER_TICK = 10
_AGAIN_AFTER_MISTAKE = timedelta(minutes=10)


class RunStarter:
    """The runs of a schedule, its new place and the runs' first tasks are committed together, or not at all."""

    name = "run starter"

    def __init__(self, store: Store, *, batch_size: int = 100, max_runs: int = 100) -> None:
        """`batch_size` schedules share a transaction, and each of them starts at most `max_runs` runs in it."""
        self._store = store
        self._batch_size = batch_size
        self._max_runs = max_runs

    def tick(self, now: datetime) -> int:
        """Returns how many schedules were served."""
        served = 0
        for _ in range(BATCHES_PER_TICK):
            with self._store.read() as tx:
                is_due = has_due_schedules(tx, to_micros(now))
            batch = self._store.transact(partial(self._serve_batch, now=now)) if is_due else 0
            served += batch
            if batch == 0:
                break
        return served

    def _serve_batch(self, tx: Transaction, now: datetime) -> int:
        rows = lock_due_schedules(tx, to_micros(now), self._batch_size)
        # In the order of ids, as everybody locks workflows.
        rows.sort(key=lambda row: row.workflow_id)
        occupied = occupations(tx, [row.workflow_id for row in rows]) if rows else {}
        moved = [self._serve(tx, row, occupied[row.workflow_id], now) for row in rows]
        move_schedules(tx, moved)
        return len(rows)

    def _serve(self, tx: Transaction, row: ScheduleRow, occupation: Occupation, now: datetime) -> ScheduleRow:
        workflow = tx.shared(Definitions).version(tx, occupation.version_id).workflow
        planned = self._plan(row, workflow, occupation, now)
        is_busy = occupation.active_runs > occupation.stopping_runs
        after, is_new = planned.row, False
        for slot in planned.slots:
            if is_busy and workflow.schedule is not None and workflow.schedule.overlap == "skip":
                continue
            # A run that somebody else has made for this time counts as this one.
            is_created = create_run(tx, _new_run(row.workflow_id, slot), to_micros(now)) is not None
            after = after._replace(last_logical_at=to_micros(slot.logical_time))
            is_busy, is_new = is_busy or is_created, is_new or is_created
            occupation = occupation._replace(active_runs=occupation.active_runs + is_created)
        has_events, after = start_for_events(tx, after, workflow, occupation, now)
        if is_new or has_events:
            start_queued_runs(tx, row.workflow_id, to_micros(now), limit=self._max_runs)
        return after

    def _plan(self, row: ScheduleRow, workflow: Workflow, occupation: Occupation, now: datetime) -> Plan:
        try:
            return plan(row, workflow, occupation, now, self._max_runs)
        except DefinitionError as error:
            # Files are checked when they are saved; what goes wrong here must not keep others from starting.
            _log.warning("could not tell when workflow `%s` is due: %s", workflow.name, error.message)
            return Plan((), row._replace(run_at=to_micros(now + _AGAIN_AFTER_MISTAKE)))


def _new_run(workflow_id: int, slot: Slot) -> NewRun:
    return NewRun(
        workflow_id,
        key=f"scheduled__{slot.run_at.isoformat()}",
        type="scheduled",
        logical_at=to_micros(slot.logical_time),
        interval_start=to_micros(slot.interval_start),
        interval_end=to_micros(slot.interval_end),
        run_after=to_micros(slot.run_at),
    )
