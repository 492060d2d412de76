"""The scheduler: gives its services their rhythm, and sleeps until something is due or somebody wakes it."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from headrace.clock import Clock, from_micros, to_micros
from headrace.errors import ConflictError, HeadraceError, StoreError
from headrace.metrics import tick_ended, tick_failed
from headrace.scheduler.age_keeper import AgeKeeper
from headrace.scheduler.deadline_keeper import DeadlineKeeper
from headrace.scheduler.past_follower import PastFollower
from headrace.scheduler.presence import ClockCorrector, Presence
from headrace.scheduler.pruner import DeleteLogs, Pruner, keep_logs
from headrace.scheduler.rescuer import Patience, Rescuer
from headrace.scheduler.reviver import Reviver
from headrace.scheduler.run_activator import RunActivator
from headrace.scheduler.run_starter import RunStarter
from headrace.scheduler.service import Service
from headrace.scheduler.waker import Waker
from headrace.scheduler.watcher_keeper import WatcherKeeper
from headrace.store import News, Outlook, Store, look_ahead

_log = logging.getLogger("headrace.scheduler")

_BREATH_SECONDS = 0.02
"""Wake-ups come in swarms while agents are busy: all schedulers together look once in this time. The first one of a
swarm is answered at once."""
_AGAIN = timedelta(seconds=0.02)
_FIRST_WAIT_SECONDS = 0.5
_LONGEST_WAIT_SECONDS = 10.0
_EARLY = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class SchedulerOptions:
    """How a scheduler behaves."""

    name: str = ""
    poll_seconds: float = 5.0
    """How long it waits for a wake-up before it looks by itself."""
    lease_seconds: float = 15.0
    renew_seconds: float = 5.0
    rescue_seconds: float = 1.0
    """How often it looks for agents that are gone."""
    patience_seconds: float = 0.0
    """How long these may take to renew their leases after the scheduler was away itself."""
    revive_seconds: float = 60.0
    """How often it looks for runs in which nothing moves."""
    watch_seconds: float = 5.0
    """How often it looks which assets are to be watched."""
    prune_seconds: float = 3600.0
    correct_clock_seconds: float = 60.0
    retention_days: int | None = None
    """Runs that ended longer ago are deleted; None: never."""
    max_runs_per_tick: int = 100
    """How many runs of one workflow are started in one go."""
    run_seconds: float | None = None
    task_seconds: float | None = None
    """Runs that are older, or have an older task, are stopped; None: never."""
    check_slas: bool = True
    """Whether tasks that are not done in time are noticed."""
    age_seconds: float = 5.0
    """How often it looks for such runs."""


def _always(outlook: Outlook, now: datetime) -> bool:
    return True


def _is_time(outlook: Outlook, now: datetime) -> bool:
    return outlook.next_at is not None and outlook.next_at <= to_micros(now)


@dataclass
class _Beat:
    """A service and when its turn comes."""

    service: Service
    every_seconds: float = 0.0
    """0: whenever there is something to do for it."""
    has_work: Callable[[Outlook, datetime], bool] = _always
    pause_seconds: float = 0.0
    """Before it goes on when it was not done."""
    due_at: datetime = field(default=_EARLY)
    failures: int = 0

    def rest(self, now: datetime, done: int) -> None:
        self.failures = 0
        self.due_at = now + timedelta(seconds=self.pause_seconds if done else self.every_seconds)

    def fail(self, now: datetime) -> None:
        self.failures += 1
        self.due_at = now + timedelta(seconds=_wait_seconds(self.failures))


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
        self._presence = Presence(store, self._options.name, self._options.lease_seconds)
        self._beats = _beats(store, clock, self._options, self._presence, delete_logs)
        self._outlook = Outlook(None, False, False)
        self._looked_at = 0.0
        self._woken = threading.Event()
        self._stopped = threading.Event()

    def start(self) -> None:
        """Correct the clock, announce the scheduler and begin to listen to wake-ups of the store."""
        ClockCorrector(self._store, self._clock).tick(self._clock.now())
        self._presence.tick(self._clock.now())
        self._store.wakeups.subscribe(self.wake, News.PLANS)

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
                self._stopped.wait(self._store.outage.met(error, _FIRST_WAIT_SECONDS))
        self._store.close()

    def tick(self) -> int:
        """Give every service its turn that is due. Returns how many things were done; 0: all is quiet."""
        now, self._looked_at = self._clock.now(), time.monotonic()
        self._look(now)
        return sum(
            self._serve(beat, now) for beat in self._beats if beat.due_at <= now and beat.has_work(self._outlook, now)
        )

    def _look(self, now: datetime) -> None:
        began = time.perf_counter()
        try:
            with self._store.read() as tx:
                self._outlook = look_ahead(tx, to_micros(now))
        except StoreError:
            tick_failed("scheduler")
            raise
        tick_ended("scheduler", began, 0)

    def _serve(self, beat: _Beat, now: datetime) -> int:
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
        """Until the next timer after the last tick is due, a service's turn comes, or somebody wakes us."""
        due = self._outlook.next_at
        until = [beat.due_at for beat in self._beats if beat.every_seconds or beat.failures]
        until.append(ticked_at + timedelta(seconds=self._options.poll_seconds))
        if due is not None:
            # One that is due and could not be served must not keep the loop from sleeping.
            until.append(max(from_micros(due), ticked_at + _AGAIN))
        seconds = (min(until) - self._clock.now()).total_seconds()
        if self._woken.wait(max(0.0, seconds)):
            rest = self._looked_at + _BREATH_SECONDS * self._presence.schedulers - time.monotonic()
            self._stopped.wait(max(0.0, rest))
            self._woken.clear()


def _beats(
    store: Store, clock: Clock, options: SchedulerOptions, presence: Presence, delete_logs: DeleteLogs
) -> list[_Beat]:
    """In this order, so that a run which ends makes room for the next one in the same tick."""
    patience = Patience(options.patience_seconds, options.rescue_seconds)
    ages = AgeKeeper(store, run_seconds=options.run_seconds, task_seconds=options.task_seconds)
    pruner = Pruner(store, retention_days=options.retention_days, delete_logs=delete_logs)
    return [
        _Beat(ClockCorrector(store, clock), options.correct_clock_seconds),
        _Beat(presence, options.renew_seconds),
        _Beat(Rescuer(store, patience=patience), options.rescue_seconds),
        _Beat(Waker(store), has_work=_is_time),
        _Beat(DeadlineKeeper(store, checks_tasks=options.check_slas), has_work=_is_time),
        _Beat(PastFollower(store), has_work=lambda outlook, _: outlook.has_nudges),
        *([_Beat(ages, options.age_seconds)] if ages.has_limits else []),
        _Beat(Reviver(store), options.revive_seconds),
        _Beat(WatcherKeeper(store), options.watch_seconds),
        _Beat(RunStarter(store, max_runs=options.max_runs_per_tick), has_work=_is_time),
        _Beat(RunActivator(store), has_work=lambda outlook, _: outlook.has_startable_runs),
        _Beat(pruner, options.prune_seconds, pause_seconds=1.0),
    ]


def _wait_seconds(failures: int) -> float:
    return min(_LONGEST_WAIT_SECONDS, _FIRST_WAIT_SECONDS * 2.0 ** (failures - 1))
