"""Takes SIGINT and SIGTERM: the first one asks a command to stop, a second one ends its process at once."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

INTERRUPTED = 130
"""The exit code of a command that was told to stop."""
ECHO_SECONDS = 1.0
"""Whoever signals a process and then its whole group (coreutils' `timeout`), or hands on what its own group has got
(wrappers in containers), sends one wish twice: what comes this soon after the first signal is part of it."""


def _leave() -> None:
    # The warm parents see their sockets close and kill every process below them.
    os._exit(INTERRUPTED)


class Interrupts:
    """A signal handler that remembers the first signal, and leaves on one that is no echo of it."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic, leave: Callable[[], None] = _leave) -> None:
        self._monotonic = monotonic
        self._leave = leave
        self._first_at: float | None = None

    @property
    def is_told(self) -> bool:
        """Whether the command is to stop."""
        return self._first_at is not None

    def __call__(self, _number: int, _frame: object) -> None:
        now = self._monotonic()
        if self._first_at is None:
            self._first_at = now
        elif now - self._first_at >= ECHO_SECONDS:
            self._leave()


@contextmanager
def listening() -> Iterator[Interrupts]:
    """Both signals go to the handler, and afterwards to whom they went before.

    A command that was told to stop is about to leave: an echo must not find the handlers that would kill it.
    """
    interrupts = Interrupts()
    before = {number: signal.signal(number, interrupts) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield interrupts
    finally:
        if not interrupts.is_told:
            for number, handler in before.items():
                signal.signal(number, handler)
