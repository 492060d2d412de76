"""Times the turns of loops."""

from __future__ import annotations

import time

from headrace.metrics.catalogue import TICK_DONE, TICK_FAILURES, TICK_SECONDS, TICK_SUCCESS


def tick_ended(service: str, began: float, done: int = 0) -> None:
    """A turn that began at this `time.perf_counter()` has ended well."""
    TICK_SECONDS.observe(time.perf_counter() - began, service)
    TICK_SUCCESS.set(time.time(), service)
    TICK_FAILURES.expect(service)
    if done:
        TICK_DONE.add(service, count=done)


def tick_failed(service: str) -> None:
    """A turn has ended with an error."""
    TICK_FAILURES.add(service)
