"""When a failed try is followed by another one."""

from __future__ import annotations

import hashlib
import math

from headrace.definition import Retry


def has_try_left(try_number: int, max_tries: int) -> bool:
    """Whether the try with this number may be followed by another. `max_tries` is the highest that may."""
    return try_number <= max_tries


def retry_delay_seconds(retry: Retry, try_number: int, seed: str) -> float:
    """How long to wait after the try with this number. The same seed and try always give the same wait."""
    delay = retry.delay_seconds
    if retry.backoff > 1:
        # Capped before it is computed: 2.0 ** 2000 is an OverflowError, and nobody waits that long.
        delay *= min(retry.backoff ** min(try_number - 1, 64), 1e12)
    if retry.jitter:
        whole = max(1, math.ceil(delay))
        delay = whole + int(hashlib.sha1(f"{seed}#{try_number}".encode()).hexdigest(), 16) % whole
    if retry.max_delay_seconds is not None:
        delay = min(delay, retry.max_delay_seconds)
    return max(0.0, delay)
