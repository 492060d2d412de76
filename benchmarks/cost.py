"""What the processes of a measurement have cost: this one, the warm parents below it, and every try that has ended."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
_OURS = b"headrace."


class Cost(NamedTuple):
    cpu_seconds: float
    page_faults: int

    def since(self, earlier: Cost) -> Cost:
        return Cost(self.cpu_seconds - earlier.cpu_seconds, self.page_faults - earlier.page_faults)


def cost_so_far() -> Cost:
    """Of this process, its children that ended, its warm parents and their children that ended.

    A warm parent's figures come from the kernel in hundredths of a second, so what is measured should take many. Where
    there is no `/proc`, a warm parent counts only when it has ended.
    """
    own = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    parents = [_of_parent(stat) for stat in _warm_parents()]
    return Cost(
        sum(usage.ru_utime + usage.ru_stime for usage in own) + sum(cost.cpu_seconds for cost in parents),
        sum(usage.ru_minflt for usage in own) + sum(cost.page_faults for cost in parents),
    )


def _of_parent(stat: str) -> Cost:
    # After the name: state, parent, …; `proc(5)` numbers minflt, cminflt as 10, 11 and the four times as 14 to 17.
    fields = stat.rpartition(")")[2].split()
    return Cost(sum(map(int, fields[11:15])) / _TICKS_PER_SECOND, int(fields[7]) + int(fields[8]))


def _warm_parents() -> Iterator[str]:
    """The state of each child of ours that runs our code; a PostgreSQL server beside them is none."""
    for threads in Path("/proc/self/task").glob("*/children"):
        for pid in threads.read_text().split():
            try:
                if _OURS in Path(f"/proc/{pid}/cmdline").read_bytes():
                    yield Path(f"/proc/{pid}/stat").read_text()
            except (FileNotFoundError, ProcessLookupError):
                continue
