"""`python -m headrace.testing.faults.throughput`: how much two of each do against one, also if some are killed.

All on one machine. Two clusters of one of each take part: what they differ by is what others may differ by, too.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from random import Random

from headrace.testing.faults.arena import Arena, open_arena
from headrace.testing.faults.fault import Outcome, conclude
from headrace.testing.faults.history import History, count_unfinished
from headrace.testing.faults.load_driver import STARTED
from headrace.testing.faults.table import table

SLOTS = 8
ONE = {"scheduler": 1, "agent": 1, "triggerer": 1}
TWO = {"scheduler": 2, "agent": 2, "triggerer": 1}
NOISE = 0.05
"""So much less is no less: clusters of one and the same size differ by this on a machine that others use, too."""


class Contestant:
    """A cluster that has loaded its files, and what it did in each round."""

    def __init__(self, name: str, arena: Arena) -> None:
        self.name = name
        self.rates: list[float] = []
        self._arena = arena
        # What starts first is slow: every agent has to load the files once.
        arena.load.wave(arena.cluster, 2)
        self._wait_until_left(0)

    def run(self, waves: int, *, with_kills: bool = False) -> None:
        """So many runs of each workflow; one of each is killed when half of the runs are done."""
        before, began = self._executions(), time.monotonic()
        self._arena.load.wave(self._arena.cluster, waves)
        if with_kills:
            self._wait_until_left(waves * len(STARTED) // 2)
            for kind in ("scheduler", "agent"):
                self._arena.cluster.running(kind)[0].kill()
        self._wait_until_left(0)
        self.rates.append((self._executions() - before) / (time.monotonic() - began))

    def conclude(self) -> Outcome:
        return conclude(self._arena, [], [])._replace(name=self.name)

    def _wait_until_left(self, left: int) -> None:
        cluster = self._arena.cluster
        cluster.wait_until(lambda: count_unfinished(cluster.store) <= left, f"{left} runs are left", 300.0)

    def _executions(self) -> int:
        return len(History.read(self._arena.cluster.store).executions)


@contextmanager
def contestant(name: str, size: Mapping[str, int], slots: int, task_seconds: float) -> Iterator[Contestant]:
    """With so many slots for each agent."""
    with open_arena(
        "postgres",
        task_seconds=task_seconds,
        ticks=1,
        size=size,
        is_one_machine=True,
        HEADRACE_AGENT__SLOTS=str(slots),
    ) as arena:
        yield Contestant(name, arena)


def main(arguments: Sequence[str] | None = None) -> int:
    """0: two of each do as much as one of each whose agent has the same settings, and nothing was lost."""
    parser = argparse.ArgumentParser(prog="python -m headrace.testing.faults.throughput", description=__doc__)
    parser.add_argument("--waves", type=int, default=60, help="how many runs of each workflow a round has")
    parser.add_argument("--rounds", type=int, default=9, help="how often they take turns; the one in the middle counts")
    parser.add_argument(
        "--task-seconds",
        type=float,
        nargs="+",
        default=[0.0, 0.05],
        help="how long each task takes beside its process; for each of these everything is measured",
    )
    options = parser.parse_args(arguments)
    are_good = [_measure(seconds, options.waves, options.rounds) for seconds in options.task_seconds]
    return 0 if all(are_good) else 1


def _measure(task_seconds: float, waves: int, rounds: int) -> bool:
    """Whether all is well with tasks that take so long."""
    with (
        contestant("one of each", ONE, SLOTS, task_seconds) as one,
        contestant("one of each again", ONE, SLOTS, task_seconds) as again,
        contestant("two with the same slots in all", TWO, SLOTS // 2, task_seconds) as halves,
        contestant("two with the same slots for each", TWO, SLOTS, task_seconds) as twice,
    ):
        everybody = [one, again, halves, twice]
        for number in range(rounds):
            for each in Random(number).sample(everybody, len(everybody)):
                each.run(waves)
        outcomes = [each.conclude() for each in everybody]
    with contestant("two, one of each is killed", TWO, SLOTS // 2, task_seconds) as killed:
        killed.run(waves, with_kills=True)
        outcomes.append(killed.conclude())
    print(f"tasks of {task_seconds:g} s" if task_seconds else "tasks that do nothing")
    print(table(outcomes))
    for each in (*everybody, killed):
        print(f"{each.name}: {statistics.median(each.rates):.0f} tasks a second ({_listed(each.rates, 0)})")
    _compare([one], again)
    _compare([one, again], halves)
    is_as_much = _compare([one, again], twice) >= 1 - NOISE
    return is_as_much and not any(outcome.failures for outcome in outcomes)


def _compare(these: Sequence[Contestant], that: Contestant) -> float:
    """The ratio in the middle, to what these did on average in the same round."""
    rates = [statistics.mean(round_) for round_ in zip(*(one.rates for one in these), strict=True)]
    ratios: list[float] = [after / before for before, after in zip(rates, that.rates, strict=True)]
    print(f"{that.name} against one of each: x {statistics.median(ratios):.2f} ({_listed(ratios, 2)})")
    return statistics.median(ratios)


def _listed(figures: Sequence[float], digits: int) -> str:
    return " ".join(f"{figure:.{digits}f}" for figure in figures)


if __name__ == "__main__":
    sys.exit(main())
