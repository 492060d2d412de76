"""How busy the processors of this machine are, whoever it is that keeps them busy."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Protocol

_IDLE = (3, 4)
"""The columns of the first line of /proc/stat that count time without work: idle, and waiting for a disk."""
_COLUMNS = 8
"""Those of guests are in others already."""


class Processors(Protocol):
    """What an agent asks about them."""

    count: int

    def idle_share(self) -> float:
        """The share of their time in which they had nothing to do since this was asked last."""


class MachineProcessors:
    """Those of this machine, as Linux tells. Elsewhere they count as idle."""

    def __init__(self, stat: Path = Path("/proc/stat")) -> None:
        self.count = os.cpu_count() or 1
        self._stat = stat
        self._last = self._read()

    def idle_share(self) -> float:
        last, self._last = self._last, self._read()
        idle, all_ = (now - before for now, before in zip(self._last, last, strict=True))
        return idle / all_ if all_ else 1.0

    def _read(self) -> tuple[int, int]:
        """In the kernel's ticks since the machine started: without work, and all."""
        try:
            line = self._stat.read_text().partition("\n")[0]
        except OSError:
            return 0, 0
        ticks = [int(word) for word in line.split()[1 : _COLUMNS + 1]]
        return sum(ticks[column] for column in _IDLE), sum(ticks)


class IdleProcessors:
    """Never busy, for agents that must not depend on what else this machine does."""

    count = 1

    def idle_share(self) -> float:
        return 1.0
