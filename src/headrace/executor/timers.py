"""Deadlines by name. Few are pending at a time, and most are dropped before they are due."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable

Action = Callable[[], None]


class Timers:
    def __init__(self) -> None:
        self._pending: dict[Hashable, tuple[float, Action]] = {}
        self._earliest = math.inf

    def set(self, key: Hashable, at: float, action: Action) -> None:
        """Do this at that time of the monotonic clock; replaces the key's former deadline."""
        self._pending[key] = (at, action)
        self._earliest = min(self._earliest, at)

    def drop(self, key: Hashable) -> None:
        # The earliest time stays as a lower bound: looking for the next one is left to the moment it is due.
        self._pending.pop(key, None)

    def wait_seconds(self, now: float) -> float | None:
        """How long nothing is due; None: for ever."""
        if not self._pending:
            self._earliest = math.inf
        return None if self._earliest == math.inf else max(0.0, self._earliest - now)

    def run_due(self, now: float) -> None:
        """Do what is due and forget it."""
        if now < self._earliest:
            return
        due = [(key, action) for key, (at, action) in self._pending.items() if at <= now]
        for key, _ in due:
            del self._pending[key]
        self._earliest = min((at for at, _ in self._pending.values()), default=math.inf)
        for _, action in due:
            action()
