"""Keeps the next time of schedules whose times only user code can tell: it is asked in a parse process."""

from __future__ import annotations

import logging
import threading
import time
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path

from headrace.authoring import SlotQuestion, ToldSlot
from headrace.clock import Clock, from_micros, to_micros
from headrace.errors import HeadraceError, StoreError
from headrace.metrics import tick_ended, tick_failed
from headrace.projects.parsing import Answers, ParsePool
from headrace.settings import ParserSettings
from headrace.store import (
    PARKED,
    Definitions,
    News,
    ScheduleRow,
    Store,
    Transaction,
    current_version_of,
    lock_schedule,
    save_schedule,
    wanted_slots,
)

_log = logging.getLogger("headrace.projects")

_POLL_SECONDS = 5.0
_AGAIN_AFTER_MISTAKE = timedelta(minutes=1)


class TimetableTeller:
    """`start` and `stop` a thread of it, or `tick` whenever you like. Any number of processes may do the same work."""

    def __init__(self, store: Store, clock: Clock, parser: ParserSettings, answers: Answers | None = None) -> None:
        self._store = store
        self._clock = clock
        self._pool = ParsePool(
            1,
            timeout_seconds=parser.timeout_seconds,
            memory_mb=parser.memory_mb,
            answers=answers,
        )
        self._is_news = threading.Event()
        self._must_end = threading.Event()
        self._thread = threading.Thread(target=self._live, name="headrace-timetables", daemon=True)

    def start(self) -> None:
        self._store.wakeups.subscribe(self._is_news.set, News.PLANS)
        self._thread.start()

    def stop(self) -> None:
        self._must_end.set()
        self._is_news.set()
        self._thread.join()
        self._pool.close()

    def tick(self) -> int:
        """Ask about every schedule that lacks its next time. Returns how many there were."""
        now = to_micros(self._clock.now())
        with self._store.read() as tx:
            rows = wanted_slots(tx, now)
        for row in rows:
            self._serve(row)
        return len(rows)

    def _live(self) -> None:
        while not self._must_end.is_set():
            began = time.perf_counter()
            try:
                tick_ended("timetable teller", began, self.tick())
            except StoreError as error:
                tick_failed("timetable teller")
                self._store.outage.met(error)
            except HeadraceError as error:
                tick_failed("timetable teller")
                _log.warning("could not ask timetables: %s", error.message)
            self._is_news.wait(_POLL_SECONDS)
            self._is_news.clear()
        self._store.close()

    def _serve(self, row: ScheduleRow) -> None:
        with self._store.read() as tx:
            version = tx.shared(Definitions).version(tx, current_version_of(tx, row.workflow_id))
        question = SlotQuestion(
            workflow=version.workflow.name,
            last_start=_instant(row.last_interval_start),
            last_end=_instant(row.last_interval_end),
        )
        answered = self._pool.ask(Path(version.project_root), version.file, question)
        if answered.error is not None:
            _log.warning("could not tell when `%s` is due: %s", version.workflow.name, answered.error.message)
            later = to_micros(self._clock.now() + _AGAIN_AFTER_MISTAKE)
            changed = row._replace(slots_wanted_at=later)
        else:
            changed = _with_slot(row, answered.slot)
        self._store.transact(partial(_save, before=row, after=changed))


def _save(tx: Transaction, before: ScheduleRow, after: ScheduleRow) -> None:
    """Unless somebody else was first, or the schedule was changed meanwhile."""
    if lock_schedule(tx, before.workflow_id) == before:
        save_schedule(tx, after)
        tx.tell()


def _with_slot(row: ScheduleRow, slot: ToldSlot | None) -> ScheduleRow:
    if slot is None:
        return row._replace(slots_wanted_at=None)
    return row._replace(
        logical_at=to_micros(slot.logical_time),
        interval_start=to_micros(slot.interval_start),
        interval_end=to_micros(slot.interval_end),
        run_at=to_micros(slot.run_at),
        slots_wanted_at=PARKED,
    )


def _instant(micros: int | None) -> datetime | None:
    return None if micros is None else from_micros(micros)
