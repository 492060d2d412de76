"""Starts the runs of due schedules, each exactly once however many schedulers there are."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
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
    News,
    Occupation,
    ScheduleRow,
    Store,
    Transaction,
    create_runs,
    has_due_schedules,
    lock_due_schedules,
    move_schedules,
    occupations,
    start_queued_runs_of,
)
from headrace.timetable import Slot

_log = logging.getLogger("headrace.scheduler")

_AGAIN_AFTER_MISTAKE = timedelta(minutes=10)


@dataclass
class _Turn:
    """A schedule that is being served."""

    workflow: Workflow
    occupation: Occupation
    after: ScheduleRow
    """Where it stands when everything is done."""
    slots: list[Slot]
    """The times whose turn has come and for which nothing was decided, oldest first."""
    is_new: bool = False
    """Whether there are runs to start."""

    @property
    def workflow_id(self) -> int:
        return self.after.workflow_id

    def next_slots(self) -> list[Slot]:
        """Take the slots that may get a run now: all, or one at a time if a run keeps the next ones from starting."""
        taken, self.slots = self.slots, []
        if self.workflow.schedule is None or self.workflow.schedule.overlap != "skip":
            return taken
        is_busy = self.occupation.active_runs > self.occupation.stopping_runs
        self.slots = [] if is_busy else taken[1:]
        return [] if is_busy else taken[:1]

    def decided(self, slot: Slot, *, is_created: bool) -> None:
        """A run that somebody else has made for this time counts as this one."""
        self.after = self.after._replace(last_logical_at=to_micros(slot.logical_time))
        self.occupation = self.occupation._replace(active_runs=self.occupation.active_runs + is_created)
        self.is_new = self.is_new or is_created


class RunStarter:
    """The runs of a schedule, its new place and the runs' first tasks are committed together, or not at all."""

    name = "run starter"

    def __init__(self, store: Store, *, batch_size: int = 100, max_runs: int = 100) -> None:
        """`batch_size` schedules share a transaction, and each of them starts at most `max_runs` runs in it."""
        self._store = store
        self._batch_size = batch_size
        self._max_runs = max_runs

    def tick(self, now: datetime) -> int:
        """Serve one batch, so that the next one begins at its own time. Returns how many schedules there were."""
        with self._store.read() as tx:
            if not has_due_schedules(tx, to_micros(now)):
                return 0
        return self._store.transact(partial(self._serve_batch, now=now))

    def _serve_batch(self, tx: Transaction, now: datetime) -> int:
        rows = lock_due_schedules(tx, to_micros(now), self._batch_size)
        if not rows:
            return 0
        turns = self._turns(tx, rows, now)
        _create_runs(tx, turns, to_micros(now))
        for turn in turns:
            has_events, turn.after = start_for_events(tx, turn.after, turn.workflow, turn.occupation, now)
            turn.is_new = turn.is_new or has_events
        start_queued_runs_of(tx, [turn.workflow_id for turn in turns if turn.is_new], to_micros(now), self._max_runs)
        move_schedules(tx, [turn.after for turn in turns])
        if any(turn.after.slots_wanted_at is not None for turn in turns):
            tx.tell(News.PLANS)  # user code is to be asked for the next time
        return len(rows)

    def _turns(self, tx: Transaction, rows: Sequence[ScheduleRow], now: datetime) -> list[_Turn]:
        occupied = occupations(tx, [row.workflow_id for row in rows])
        definitions = tx.shared(Definitions)
        definitions.load(tx, [one.version_id for one in occupied.values()])
        turns = []
        # In the order of ids, as everybody locks workflows.
        for row in sorted(rows, key=lambda row: row.workflow_id):
            occupation = occupied[row.workflow_id]
            workflow = definitions.version(tx, occupation.version_id).workflow
            planned = self._plan(row, workflow, occupation, now)
            turns.append(_Turn(workflow, occupation, planned.row, list(planned.slots)))
        return turns

    def _plan(self, row: ScheduleRow, workflow: Workflow, occupation: Occupation, now: datetime) -> Plan:
        try:
            return plan(row, workflow, occupation, now, self._max_runs)
        except DefinitionError as error:
            # Files are checked when they are saved; what goes wrong here must not keep others from starting.
            _log.warning("could not tell when workflow `%s` is due: %s", workflow.name, error.message)
            return Plan((), row._replace(run_at=to_micros(now + _AGAIN_AFTER_MISTAKE)))


def _create_runs(tx: Transaction, turns: Sequence[_Turn], now: int) -> None:
    """In few statements for all schedules, however many slots they have."""
    while chosen := [(turn, slot) for turn in turns for slot in turn.next_slots()]:
        created = create_runs(tx, [_new_run(turn, slot) for turn, slot in chosen], now)
        for (turn, slot), run_id in zip(chosen, created, strict=True):
            turn.decided(slot, is_created=run_id is not None)


def _new_run(turn: _Turn, slot: Slot) -> NewRun:
    if slot.partition_key is not None:
        return NewRun(
            turn.workflow_id,
            key=f"scheduled__{slot.run_at.isoformat()}__{slot.partition_key}",
            type="scheduled",
            run_after=to_micros(slot.run_at),
            version_id=turn.occupation.version_id,
            partition_key=slot.partition_key,
            partition_at=to_micros(slot.about),
            slot_at=to_micros(slot.logical_time),
        )
    return NewRun(
        turn.workflow_id,
        key=f"scheduled__{slot.run_at.isoformat()}",
        type="scheduled",
        logical_at=to_micros(slot.logical_time),
        interval_start=to_micros(slot.interval_start),
        interval_end=to_micros(slot.interval_end),
        run_after=to_micros(slot.run_at),
        version_id=turn.occupation.version_id,
    )
