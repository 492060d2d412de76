"""`python -m headrace.testing.faults.recovery --kills 100`: how long it takes from a death to the next try."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence

from headrace.testing.faults.arena import Arena, open_quiet_arena
from headrace.testing.faults.fault import Interrupted
from headrace.testing.faults.kills import kill_agent, kill_task
from headrace.testing.faults.table import percentile

FASTEST = {
    "HEADRACE_AGENT__LEASE_SECONDS": "1",
    "HEADRACE_AGENT__RENEW_SECONDS": "0.25",
    "HEADRACE_AGENT__KILL_GRACE_SECONDS": "0.1",
    "HEADRACE_SCHEDULER__RESCUE_SECONDS": "0.1",
}
CASES: dict[str, tuple[Callable[[Arena], Interrupted], Mapping[str, str], float]] = {
    "an agent, by default": (kill_agent, {}, 20.0),
    "an agent, as fast as can be": (kill_agent, FASTEST, 2.0),
    "a task's process": (kill_task, {}, 1.0),
}
"""Who is killed, with which settings, and in how many seconds the next try is to begin."""
_FOR_EVER_SECONDS = 3600.0


def measure(how: Callable[[Arena], Interrupted], settings: Mapping[str, str], kills: int) -> list[float]:
    """Seconds from each kill -9 to the start of the next try of the task that was interrupted.

    Every process is on a host of its own: nobody can see that it is dead, as it is with machines that fail.
    """
    with open_quiet_arena(settings, _FOR_EVER_SECONDS) as arena:
        return [_recover(arena, how) for _ in range(kills)]


def _recover(arena: Arena, how: Callable[[Arena], Interrupted]) -> float:
    interrupted = how(arena)
    line, at = interrupted.lines[0], interrupted.at

    def waited() -> float:
        start = arena.load.record.next_start(line.name, at)
        return 0.0 if start is None else start - at

    seconds = arena.cluster.wait_until(waited, f"{line.name} is tried again")
    arena.replenish()
    arena.cluster.wait_for_members(arena.size["agent"])
    return seconds


def main(arguments: Sequence[str] | None = None) -> int:
    """0: every goal was reached."""
    parser = argparse.ArgumentParser(prog="python -m headrace.testing.faults.recovery", description=__doc__)
    parser.add_argument("--kills", type=int, default=100, help="how many times somebody is killed")
    parser.add_argument("--case", action="append", choices=[*CASES], help="only this one")
    options = parser.parse_args(arguments)
    is_good = True
    print(f"{'killed':30}{'kills':>7}{'p50':>9}{'p99':>9}{'goal':>9}", flush=True)
    for name in options.case or CASES:
        how, settings, goal = CASES[name]
        seconds = measure(how, settings, options.kills)
        p50, p99 = percentile(seconds, 50), percentile(seconds, 99)
        is_good = is_good and p99 < goal
        print(f"{name:30}{len(seconds):7}{p50:7.2f} s{p99:7.2f} s{goal:7.0f} s", flush=True)
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main())
