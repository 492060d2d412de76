"""`python -m headrace.testing.faults.soak --minutes 30`: a cluster at 70 % of its most, with a fault every 20 s."""

from __future__ import annotations

import argparse
import itertools
import sys
import threading
import time
from collections.abc import Sequence
from typing import NamedTuple

import psutil

from headrace.clock import SystemClock, to_micros
from headrace.testing.faults.arena import Arena, open_arena
from headrace.testing.faults.databases import cut_connections, restart_postgres
from headrace.testing.faults.fault import NOBODY, Fault, Interrupted, Outcome, conclude
from headrace.testing.faults.gauges import Gauges, Window, handoffs
from headrace.testing.faults.history import count_unfinished
from headrace.testing.faults.kills import kill_task
from headrace.testing.faults.load_driver import EVERY_SECONDS, STARTED
from headrace.testing.faults.members import kill
from headrace.testing.faults.table import table

SIZE = {"scheduler": 2, "agent": 2, "triggerer": 2}
FAULT_SECONDS = 20.0
LOOK_SECONDS = 5.0
PART = 0.7
WINDOWS = 6
SLOWEST = 3
_MEASURED_SECONDS = 20.0
_BACKLOG = 12


def kill_newest(kind: str) -> Fault:
    """The oldest one stays, so that there is somebody whose memory can be watched to the end."""

    def inject(arena: Arena) -> Interrupted:
        arena.cluster.running(kind)[-1].kill()
        return NOBODY

    return Fault(f"kill -9 of a {kind}", "", inject)


def kill_newest_zygotes(arena: Arena) -> Interrupted:
    """Those of the agent that does not stay."""

    def killed() -> Interrupted | None:
        times = [kill(pid) for pid in arena.cluster.running("agent")[-1].zygotes()]
        return Interrupted((), 0.0, times=len(times)) if times else None

    return arena.wait_under_load(killed, "the newest agent has a warm parent that can be killed")


FAULTS = (
    Fault("kill -9 of a task", "", kill_task),
    kill_newest("agent"),
    Fault("kill -9 of a zygote", "", kill_newest_zygotes),
    kill_newest("scheduler"),
    Fault("connections are cut", "", cut_connections),
    kill_newest("triggerer"),
    Fault("PostgreSQL is restarted", "", restart_postgres),
)


class Pace:
    """Brings waves at a steady pace, also while a fault is waited for that needs somebody at work."""

    def __init__(self, arena: Arena, waves_per_second: float) -> None:
        self._arena = arena
        self._waves_per_second = waves_per_second
        self._is_over = threading.Event()
        self._failures: list[Exception] = []
        self._thread = threading.Thread(target=self._bring, name="pace")

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()
        if self._failures:
            raise self._failures[0]

    def _bring(self) -> None:
        began = time.monotonic()
        try:
            for number in itertools.count(1):
                self._arena.load.wave(self._arena.cluster)
                if self._is_over.wait(max(0.0, began + number / self._waves_per_second - time.monotonic())):
                    return
        except Exception as error:
            self._failures.append(error)
        finally:
            self._arena.cluster.store.close()


class Stretch(NamedTuple):
    """The time from one fault to the next."""

    fault: str
    seconds: float
    """How long it took to bring it about."""
    began_at: int
    busy: float = 0.0
    """How many percent of the machine were."""
    stolen: float = 0.0
    """How many percent of it its host let others have, although there was something to do here."""
    waits: Window = Window(0, 0.0, 0.0)


class Soak:
    """One cluster for a long time."""

    def __init__(self, arena: Arena) -> None:
        self._arena = arena
        self._faults = itertools.cycle(FAULTS)
        self.gauges = Gauges(arena.cluster)
        self.windows: list[Window] = []
        self.stretches: list[Stretch] = []
        self.interrupted: list[Interrupted] = []

    def measure(self) -> float:
        """How many waves a second the cluster can do, with as much to do as it can take."""
        arena, started, until = self._arena, 0, time.monotonic() + _MEASURED_SECONDS
        while time.monotonic() < until:
            if count_unfinished(arena.cluster.store) < _BACKLOG:
                arena.load.wave(arena.cluster)
                started += 1
            else:
                time.sleep(0.02)
        return (started - _BACKLOG / len(STARTED)) / _MEASURED_SECONDS

    def go_on(self, seconds: float, waves_per_second: float) -> None:
        """Keep the pace for so long. What a fault held up is made up for, as work does not stop coming."""
        began_at = _now()
        with Pace(self._arena, waves_per_second):
            self._watch(seconds)
        ended_at = _now()
        edges = [began_at + (ended_at - began_at) * number // WINDOWS for number in range(WINDOWS + 1)]
        self.windows = [self._waits(*edge) for edge in itertools.pairwise(edges)]
        ends = [*(stretch.began_at for stretch in self.stretches[1:]), ended_at]
        self.stretches = [
            stretch._replace(waits=self._waits(stretch.began_at, end))
            for stretch, end in zip(self.stretches, ends, strict=True)
        ]

    def _waits(self, since: int, until: int) -> Window:
        return handoffs(self._arena.cluster.store, since, until)

    def _watch(self, seconds: float) -> None:
        """Break something and look at everybody, each in its time."""
        began = time.monotonic()
        faults, looks = itertools.count(1), itertools.count(1)
        next_fault, next_look = FAULT_SECONDS, 0.0
        while (passed := time.monotonic() - began) < seconds:
            if passed >= next_fault:
                self._break_something()
                next_fault = next(faults) * FAULT_SECONDS + FAULT_SECONDS
            if passed >= next_look:
                self.gauges.read()
                next_look = next(looks) * LOOK_SECONDS
            time.sleep(0.01)
        self._note_busy()

    def end(self) -> Outcome:
        return conclude(self._arena, FAULTS, self.interrupted)

    def _break_something(self) -> None:
        self._note_busy()
        fault, began_at, began = next(self._faults), _now(), time.monotonic()
        self.interrupted.append(fault.inject(self._arena))
        self._arena.replenish()
        self.stretches.append(Stretch(fault.name, time.monotonic() - began, began_at))

    def _note_busy(self) -> None:
        times = psutil.cpu_times_percent()  # since they were last asked for
        stolen = getattr(times, "steal", 0.0)
        busy = 100.0 - times.idle - getattr(times, "iowait", 0.0) - stolen
        if self.stretches:
            self.stretches[-1] = self.stretches[-1]._replace(busy=busy, stolen=stolen)


def _now() -> int:
    return to_micros(SystemClock().now())


def main(arguments: Sequence[str] | None = None) -> int:
    """0: nothing was lost, and nobody grew."""
    parser = argparse.ArgumentParser(prog="python -m headrace.testing.faults.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=30.0)
    seconds = parser.parse_args(arguments).minutes * 60
    with open_arena("postgres", task_seconds=0.02, ticks=int(seconds / EVERY_SECONDS), size=SIZE) as arena:
        soak = Soak(arena)
        most = soak.measure()
        print(f"at most {most:.2f} waves a second; the soak has {most * PART:.2f}", flush=True)
        soak.go_on(seconds, most * PART)
        outcome = soak.end()
    print(table([outcome._replace(name="soak")]))
    for wrong in outcome.failures:
        print(f"  {wrong.kind}: {wrong.what}")
    return 0 if _tell(soak, seconds) and not outcome.failures else 1


def _tell(soak: Soak, seconds: float) -> bool:
    """Whether nobody grew who was there for a third of the time."""
    for number, window in enumerate(soak.windows, 1):
        print(f"part {number}: {window.tasks} tasks waited {window.p50 * 1e3:.0f} ms (p50), {window.p99:.2f} s (p99)")
    slowest = sorted(soak.stretches, key=lambda stretch: -stretch.waits.p99)[:SLOWEST]
    for stretch in slowest:
        minute = (stretch.began_at - soak.stretches[0].began_at) / 60e6
        took = f"which took {stretch.seconds:.1f} s, in minute {minute:.0f}"
        machine = f"{stretch.busy:.0f} % busy and {stretch.stolen:.0f} % stolen"
        print(f"slowest: {stretch.waits.p99:.2f} s (p99) after {stretch.fault}, {took}, {machine}")
    lives = list(soak.gauges.lives(seconds / 3))
    for life in lives:
        grown = f"{life.warm.megabytes:.0f} to {life.last.megabytes:.0f} MB"
        descriptors = f"{life.warm.descriptors} to {life.last.descriptors} descriptors"
        print(f"{life.name}: {life.seconds:.0f} s, {grown}, {descriptors}{'' if life.is_flat else ': GROWS'}")
    return all(life.is_flat for life in lives)


if __name__ == "__main__":
    sys.exit(main())
