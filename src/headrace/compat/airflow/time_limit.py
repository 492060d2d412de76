"""`with timeout(seconds):`, for code in the main thread of a task."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from headrace.authoring.dag.exceptions import AirflowTaskTimeout


@contextmanager
def timeout(seconds: float = 1, error_message: str = "Timeout") -> Iterator[None]:
    """Raises AirflowTaskTimeout in the block when it takes longer."""

    def ring(number: int, frame: FrameType | None) -> None:
        raise AirflowTaskTimeout(f"{error_message}: took longer than {seconds:g} s")

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
