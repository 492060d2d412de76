"""`python -m headrace.testing.faults.throughput`: two of each do as much as one, also if one of each is killed."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from headrace.testing.faults.arena import Arena, open_arena
from headrace.testing.faults.fault import Outcome, conclude
from headrace.testing.faults.history import History, count_unfinished
from headrace.testing.faults.table import table

SLOTS = 8
"""In all, however many agents share them."""
ONE = {"scheduler": 1, "agent": 1, "triggerer": 1}
TWO = {"scheduler": 2, "agent": 2, "triggerer": 1}


class Pace(NamedTuple):
    """What a cluster did."""

    outcome: Outcome
    tasks_per_second: float


def run(name: str, size: Mapping[str, int], waves: int, *, with_kills: bool = False) -> Pace:
    """How fast a cluster of this size does so many waves; one of each is killed when half of them are done."""
    slots = str(SLOTS // size["agent"])
    with open_arena("postgres", task_seconds=0.0, ticks=1, size=size, HEADRACE_AGENT__SLOTS=slots) as arena:
        # What starts first is slow: every agent has to load the files once.
        arena.load.wave(arena.cluster, 2)
        _wait_until_done(arena, 0)
        before, began = _executions(arena), time.monotonic()
        arena.load.wave(arena.cluster, waves)
        if with_kills:
            _wait_until_done(arena, waves)
            for kind in ("scheduler", "agent"):
                arena.cluster.running(kind)[0].kill()
        _wait_until_done(arena, 0)
        seconds = time.monotonic() - began
        rate = (_executions(arena) - before) / seconds
        return Pace(conclude(arena, [], [])._replace(name=name), rate)


def _wait_until_done(arena: Arena, left: int) -> None:
    arena.cluster.wait_until(lambda: count_unfinished(arena.cluster.store) <= left, f"{left} runs are left", 300.0)


def _executions(arena: Arena) -> int:
    return len(History.read(arena.cluster.store).executions)


def main(arguments: Sequence[str] | None = None) -> int:
    """0: two of each are not slower than one of each, and nothing was lost."""
    parser = argparse.ArgumentParser(prog="python -m headrace.testing.faults.throughput", description=__doc__)
    parser.add_argument("--waves", type=int, default=60, help="how many runs of each workflow there are")
    parser.add_argument("--rounds", type=int, default=3, help="the best of so many rounds counts")
    options = parser.parse_args(arguments)
    rounds = [_round(options.waves) for _ in range(options.rounds)]
    one, two, killed = (max(paces, key=lambda pace: pace.tasks_per_second) for paces in zip(*rounds, strict=True))
    print(table(pace.outcome for paces in rounds for pace in paces))
    for pace in (one, two, killed):
        print(f"{pace.outcome.name}: {pace.tasks_per_second:.0f} tasks a second")
    is_lost = any(pace.outcome.failures for paces in rounds for pace in paces)
    return 1 if is_lost or two.tasks_per_second < one.tasks_per_second else 0


def _round(waves: int) -> tuple[Pace, Pace, Pace]:
    return (
        run("one of each", ONE, waves),
        run("two of each", TWO, waves),
        run("two, one of each is killed", TWO, waves, with_kills=True),
    )


if __name__ == "__main__":
    sys.exit(main())
