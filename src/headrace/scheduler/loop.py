"""The scheduler: gives its services their rhythm, and sleeps until something is due or somebody wakes it."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from datetime import datetime, timedelta

from headrace.clock import Clock, from_micros, to_micros
from headrace.errors import ConflictError, HeadraceError, StoreError
from headrace.metrics import tick_ended, tick_failed
from headrace.scheduler.beats import FIRST_WAIT_SECONDS, Beat, beats_of
from headrace.scheduler.options import SchedulerOptions
from headrace.scheduler.presence import ClockCorrector, Presence
from headrace.scheduler.pruner import DeleteLogs, keep_logs
from headrace.store import News, Outlook, Store, Told, look_ahead

_log = logging.getLogger("headrace.scheduler")

_BREATH_SECONDS = 0.02
"""Wake-ups come in swarms while agents are busy: the first scheduler looks once in this time, and each of the others so
much later than the one before it, in case that one is late. The first wake-up of a swarm is answered at once."""
_PATIENT_SECONDS = 0.3
"""Each time that one of the others looks in vain it waits longer before the next look, at most so long, until it finds
something to do."""
_AGAIN = timedelta(seconds=0.02)


class Scheduler:
    """`start`, then `run` (or `tick` again and again), then `stop`. Any number of them may share a store."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        options: SchedulerOptions | None = None,
        delete_logs: DeleteLogs = keep_logs,
    ) -> None:
        self._store = store
        self._clock = clock
        self._options = options or SchedulerOptions()
        self._presence = Presence(store, self._options)
        self._beats = [
            Beat(ClockCorrector(store, clock), self._options.correct_clock_seconds),
            Beat(self._presence, self._options.renew_seconds),
            *beats_of(store, self._options, delete_logs),
        ]
        self._outlook = Outlook(None, False, False)
        self._looked_at = 0.0
        self._looks_in_vain = 0
        self._woken = threading.Event()
        self._stopped = threading.Event()

    def start(self) -> None:
        """Correct the clock, announce the scheduler and begin to listen to wake-ups of the store."""
        ClockCorrector(self._store, self._clock).tick(self._clock.now())
        self._presence.tick(self._clock.now())
        self._store.wakeups.subscribe(self.wake, News.PLANS, self._wait_for_turn)

    def wake(self) -> None:
        """Have the loop look at once. Any thread may call it."""
        self._woken.set()

    def stop(self) -> None:
        """End the loop and leave. Any thread may call it; nothing is lost wherever the loop is."""
        self._stopped.set()
        self._woken.set()
        try:
            self._presence.leave(self._clock.now())
        except HeadraceError as error:
            _log.warning("could not resign: %s", error.message)

    def run(self, stop: Callable[[], bool] = lambda: False) -> None:
        """Tick until told to stop, also through times when the database is away."""
        while not self._stopped.is_set() and not stop():
            try:
                now = self._clock.now()
                if not self.tick():
                    self._sleep(now)
            except StoreError as error:
                self._stopped.wait(self._store.outage.met(error, FIRST_WAIT_SECONDS))
        self._store.close()

    def tick(self) -> int:
        """Give every service its turn that is due. Returns how many things were done; 0: all is quiet."""
        now, self._looked_at = self._clock.now(), time.monotonic()
        self._look(now)
        done = sum(self._serve(beat, now) for beat in self._beats if beat.is_due(self._outlook, now))
        self._looks_in_vain = 0 if done else self._looks_in_vain + 1
        return done

    def next_look(self, ticked_at: datetime) -> datetime:
        """When the next timer after this tick is due, or a service's turn comes."""
        due = self._outlook.next_at
        until = [beat.due_at for beat in self._beats if beat.every_seconds or beat.failures]
        until.append(ticked_at + timedelta(seconds=self._options.poll_seconds))
        if due is not None:
            # One that was due and could not be served must not keep the loop from sleeping.
            until.append(from_micros(due) if due > to_micros(ticked_at) else ticked_at + _AGAIN)
        return min(until)

    def _look(self, now: datetime) -> None:
        began = time.perf_counter()
        try:
            with self._store.read() as tx:
                self._outlook = look_ahead(tx, to_micros(now))
        except StoreError:
            tick_failed("scheduler")
            raise
        tick_ended("scheduler", began, 0)

    def _serve(self, beat: Beat, now: datetime) -> int:
        began = time.perf_counter()
        try:
            done = beat.service.tick(now)
        except ConflictError as error:
            _log.warning("the %s could not do its work: %s", beat.service.name, error.message)
        except StoreError:
            tick_failed(beat.service.name)
            raise
        except HeadraceError as error:
            _log.warning("the %s could not do its work: %s", beat.service.name, error.message)
        except Exception:
            # A mistake in one service must not stop the others.
            _log.exception("the %s could not do its work", beat.service.name)
        else:
            tick_ended(beat.service.name, began, done)
            beat.rest(now, done)
            return done if beat.pause_seconds == 0 else 0
        tick_failed(beat.service.name)
        beat.fail(now)
        return 0

    def _sleep(self, ticked_at: datetime) -> None:
        """Until the next look, unless somebody wakes us."""
        seconds = (self.next_look(ticked_at) - self._clock.now()).total_seconds()
        if self._woken.wait(max(0.0, seconds)):
            rest = self._looked_at + self._breath_seconds() - time.monotonic()
            self._stopped.wait(max(0.0, rest))
            self._woken.clear()

    def _wait_for_turn(self, told: Told) -> float:
        """One scheduler is enough to do what was told; if it does not, the next one does."""
        return _BREATH_SECONDS * self._presence.turn.place

    def _breath_seconds(self) -> float:
        turn = self._presence.turn
        if turn.place == 0:
            return _BREATH_SECONDS
        return min(_BREATH_SECONDS * turn.of * (1 + self._looks_in_vain), _PATIENT_SECONDS)
