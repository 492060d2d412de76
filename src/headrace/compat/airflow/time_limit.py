"""`with timeout(seconds):`, for code in the main thread of a task."""

from __future__ import annotations

from contextlib import AbstractContextManager

from headrace.authoring.dag.time_limit import time_limit


def timeout(seconds: float = 1, error_message: str = "Timeout") -> AbstractContextManager[None]:
    """Raises AirflowTaskTimeout in the block when it takes longer."""
    return time_limit(seconds, f"{error_message}: took longer than {seconds:g} s")
