"""A limit on how long a block of code may take, for the main thread."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from headrace.authoring.dag.exceptions import AirflowTaskTimeout


@contextmanager
def time_limit(seconds: float, message: str) -> Iterator[None]:
    """Raises AirflowTaskTimeout in the block once the time is over, and takes the alarm back afterwards."""

    def ring(number: int, frame: FrameType | None) -> None:
        raise AirflowTaskTimeout(message)

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
