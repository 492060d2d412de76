"""What the processes of a measurement have cost: this one, the warm parents below it, and every try."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
_OURS = b"headrace."


class Cost(NamedTuple):
    cpu_seconds: float
    page_faults: int

    def since(self, earlier: Cost) -> Cost:
        return Cost(self.cpu_seconds - earlier.cpu_seconds, self.page_faults - earlier.page_faults)


class Machine(NamedTuple):
    """What a machine did with its processors since it started, in ticks."""

    stolen: int
    """Its host let others have them, although there was something to do here."""
    all: int

    def stolen_since(self, earlier: Machine) -> float:
        """As a share of the time that passed."""
        return (self.stolen - earlier.stolen) / max(1, self.all - earlier.all)


def machine_so_far() -> Machine:
    """Where the system does not tell (it needs Linux), nothing is stolen."""
    try:
        first, _, _ = Path("/proc/stat").read_text().partition("\n")
    except FileNotFoundError:
        return Machine(0, 0)
    ticks = [int(part) for part in first.split()[1:9]]  # user, nice, system, idle, iowait, irq, softirq, steal
    return Machine(ticks[-1], sum(ticks))


def cost_so_far() -> Cost:
    """Of this process, and of all processes of ours that it started, directly or not, whether they have ended or not.

    What ended processes took is known in hundredths of a second for each parent, so what is measured should take many.
    Where the system does not tell (it needs Linux), only direct children that have ended are counted.
    """
    own = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    below = [_cost_of(pid) for pid in _children("self") if _is_ours(pid)]
    return Cost(
        sum(usage.ru_utime + usage.ru_stime for usage in own) + sum(cost.cpu_seconds for cost in below),
        sum(usage.ru_minflt for usage in own) + sum(cost.page_faults for cost in below),
    )


def _cost_of(pid: str) -> Cost:
    """Of a process, its living descendants, and the children that it has waited for."""
    try:
        while True:
            ended = _ended_below(pid)
            own = _own_cost(pid)
            below = [_cost_of(child) for child in _children(pid)]
            # A child that was waited for meanwhile would be counted twice or not at all.
            if _ended_below(pid) == ended:
                parts = (own, ended, *below)
                return Cost(sum(one.cpu_seconds for one in parts), sum(one.page_faults for one in parts))
    except (FileNotFoundError, ProcessLookupError):
        return Cost(0.0, 0)


# After the name: state, parent, …; `proc(5)` numbers minflt and cminflt 10 and 11, cutime and cstime 16 and 17.


def _own_cost(pid: str) -> Cost:
    return Cost(int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e9, int(_stat(pid)[7]))


def _ended_below(pid: str) -> Cost:
    fields = _stat(pid)
    return Cost((int(fields[13]) + int(fields[14])) / _TICKS_PER_SECOND, int(fields[8]))


def _stat(pid: str) -> list[str]:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


def _children(pid: str) -> Iterator[str]:
    # Processes and threads may end while they are looked at.
    with suppress(FileNotFoundError, ProcessLookupError):
        for threads in Path(f"/proc/{pid}/task").glob("*/children"):
            with suppress(FileNotFoundError, ProcessLookupError):
                yield from threads.read_text().split()


def _is_ours(pid: str) -> bool:
    """A PostgreSQL server beside the agent is not."""
    try:
        return _OURS in Path(f"/proc/{pid}/cmdline").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return False
