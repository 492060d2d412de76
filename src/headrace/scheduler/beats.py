"""When the services of a scheduler have their turns: when the outlook has something for them, or from time to time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from headrace.clock import to_micros
from headrace.scheduler.age_keeper import AgeKeeper
from headrace.scheduler.deadline_keeper import DeadlineKeeper
from headrace.scheduler.options import SchedulerOptions
from headrace.scheduler.past_follower import PastFollower
from headrace.scheduler.pruner import DeleteLogs, Pruner, keep_logs
from headrace.scheduler.rescuer import Patience, Rescuer
from headrace.scheduler.reviver import Reviver
from headrace.scheduler.run_activator import RunActivator
from headrace.scheduler.run_starter import RunStarter
from headrace.scheduler.service import Service
from headrace.scheduler.waker import Waker
from headrace.scheduler.watcher_keeper import WatcherKeeper
from headrace.store import Outlook, Store

FIRST_WAIT_SECONDS = 0.5
_LONGEST_WAIT_SECONDS = 10.0
_EARLY = datetime(1970, 1, 1, tzinfo=UTC)


def _always(outlook: Outlook, now: datetime) -> bool:
    return True


def _is_time(outlook: Outlook, now: datetime) -> bool:
    return outlook.next_at is not None and outlook.next_at <= to_micros(now)


@dataclass
class Beat:
    """A service and when its turn comes."""

    service: Service
    every_seconds: float = 0.0
    """0: whenever there is something to do for it."""
    has_work: Callable[[Outlook, datetime], bool] = _always
    pause_seconds: float = 0.0
    """Before it goes on when it was not done."""
    due_at: datetime = field(default=_EARLY)
    failures: int = 0

    def is_due(self, outlook: Outlook, now: datetime) -> bool:
        return self.due_at <= now and self.has_work(outlook, now)

    def rest(self, now: datetime, done: int) -> None:
        self.failures = 0
        self.due_at = now + timedelta(seconds=self.pause_seconds if done else self.every_seconds)

    def fail(self, now: datetime) -> None:
        self.failures += 1
        self.due_at = now + timedelta(seconds=_wait_seconds(self.failures))


def beats_of(store: Store, options: SchedulerOptions, delete_logs: DeleteLogs = keep_logs) -> list[Beat]:
    """All services that work on what the store holds.

    In this order, so that a run which ends makes room for the next one in the same tick.
    """
    patience = Patience(options.patience_seconds, options.rescue_seconds)
    ages = AgeKeeper(store, run_seconds=options.run_seconds, task_seconds=options.task_seconds)
    pruner = Pruner(store, retention_days=options.retention_days, delete_logs=delete_logs)
    return [
        Beat(Rescuer(store, patience=patience), options.rescue_seconds),
        Beat(Waker(store), has_work=_is_time),
        Beat(DeadlineKeeper(store, checks_tasks=options.check_slas), has_work=_is_time),
        Beat(PastFollower(store), has_work=lambda outlook, _: outlook.has_nudges),
        *([Beat(ages, options.age_seconds)] if ages.has_limits else []),
        Beat(Reviver(store), options.revive_seconds),
        Beat(WatcherKeeper(store), options.watch_seconds),
        Beat(RunStarter(store, max_runs=options.max_runs_per_tick), has_work=_is_time),
        Beat(RunActivator(store), has_work=lambda outlook, _: outlook.has_startable_runs),
        Beat(pruner, options.prune_seconds, pause_seconds=1.0),
    ]


def _wait_seconds(failures: int) -> float:
    return min(_LONGEST_WAIT_SECONDS, FIRST_WAIT_SECONDS * 2.0 ** (failures - 1))
