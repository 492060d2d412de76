"""Gives a cluster its work: the workflows of `load/`, runs of them, and a record of what their tasks did."""

from __future__ import annotations

import itertools
import shutil
import time
from contextlib import suppress
from functools import partial
from pathlib import Path

from headrace.actions.finding import find_workflow
from headrace.actions.pools import change_pool
from headrace.actions.schedules import disable
from headrace.actions.trigger import trigger
from headrace.clock import SystemClock
from headrace.store import Store, list_runs, runs_by_key
from headrace.testing.faults.checker import Schedule, Wrong, check
from headrace.testing.faults.cluster import Cluster, NeverHappened
from headrace.testing.faults.history import count_unfinished
from headrace.testing.faults.record import Record

WORKFLOWS = Path(__file__).parent / "load"
STARTED = ("mixed", "nested")
"""What a wave starts a run of each of; the others have schedules."""
ONLY_TICKS = ("load_dags.py", "noting.py")
EVERY_SECONDS = 2
_SECOND = 1_000_000


class Load:
    """Work for a cluster: `settings` before it starts, `bring` when it is there, then `wave` again and again."""

    def __init__(
        self,
        folder: Path,
        *,
        task_seconds: float = 0.2,
        ticks: int = 5,
        is_small: bool = False,
        is_stubborn: bool = False,
        is_held: bool = False,
    ) -> None:
        """A small load is one schedule and nothing else; stubborn tasks do not end when they are asked to.

        What is held ends when `let_go` says so.
        """
        folder.mkdir(parents=True, exist_ok=True)
        self.record = Record(folder)
        self._first_tick = int(time.time()) // EVERY_SECONDS * EVERY_SECONDS
        self._ticks = ticks
        self._is_small = is_small
        self._numbers = itertools.count(1)
        self.settings = {
            "LOAD_FOLDER": str(folder),
            "LOAD_SECONDS": str(task_seconds),
            "LOAD_FIRST_TICK": str(self._first_tick),
            "LOAD_TICKS": str(ticks),
            "LOAD_IS_STUBBORN": "yes" if is_stubborn else "",
            "LOAD_IS_HELD": "yes" if is_held else "",
        }

    def bring(self, cluster: Cluster) -> None:
        """Copy the workflows into the project and set their pool."""
        change_pool(cluster.store, "narrow", 2)
        for path in WORKFLOWS.iterdir():
            if path.is_file() and (not self._is_small or path.name in ONLY_TICKS):
                shutil.copy(path, cluster.project)

    def wait_for_workflows(self, cluster: Cluster) -> None:
        cluster.wait_for_workflows("ticks", *(() if self._is_small else (*STARTED, "dig_ticks")))

    def wave(self, cluster: Cluster, runs: int = 1) -> None:
        """Start so many runs of each workflow, each exactly once even if the database is away meanwhile."""
        for number in itertools.islice(self._numbers, runs):
            for name in STARTED:
                is_triggered = partial(_is_triggered, cluster.store, name, f"wave-{number}")
                cluster.wait_until(is_triggered, f"run {number} of `{name}` is started")

    def let_go(self, number: int) -> None:
        """Have the tries with this number end."""
        (self.record.folder / f"let go {number}").touch()

    def finish(self, cluster: Cluster, seconds: float) -> None:
        """Until every run has ended; what has not by then is for the check to report."""
        if not self._is_small:
            # Where nothing is held up, all else may have ended before its first time has come.
            with suppress(NeverHappened):
                cluster.wait_until(
                    partial(_has_run, cluster.store, "dig_ticks"), "the endless schedule has begun", seconds
                )
            cluster.wait_until(partial(_is_disabled, cluster.store, "dig_ticks"), "the endless schedule is disabled")
        with suppress(NeverHappened):
            cluster.wait_until(lambda: self._is_done(cluster.store), "every run has ended", seconds)

    def check(self, store: Store) -> list[Wrong]:
        first = self._first_tick * _SECOND
        last = first + (self._ticks - 1) * EVERY_SECONDS * _SECOND
        schedules = [Schedule("ticks", EVERY_SECONDS * _SECOND, first, last)]
        schedules += [] if self._is_small else [Schedule("dig_ticks", EVERY_SECONDS * _SECOND)]
        return check(store, self.record.lines(), schedules)

    def _is_done(self, store: Store) -> bool:
        with store.read() as tx:
            ticks = len(list_runs(tx, find_workflow(tx, "ticks").id, limit=self._ticks))
        return ticks >= self._ticks and count_unfinished(store) == 0


def _is_triggered(store: Store, name: str, key: str) -> bool:
    with store.read() as tx:
        if runs_by_key(tx, find_workflow(tx, name).id, [key]):
            return True
    trigger(store, SystemClock(), name, run_key=key)
    return True


def _has_run(store: Store, name: str) -> bool:
    with store.read() as tx:
        return bool(list_runs(tx, find_workflow(tx, name).id, limit=1))


def _is_disabled(store: Store, name: str) -> bool:
    disable(store, SystemClock(), "project", name)
    return True
