"""When a failed try is followed by another one."""

from __future__ import annotations

import hashlib
import math
import sys

from headrace.definition import Retry

_LONGEST_SECONDS = 100 * 365 * 86_400.0
"""Nobody waits longer, and the due time must still fit into the database's microseconds."""


def has_try_left(try_number: int, max_tries: int) -> bool:
    """Whether the try with this number may be followed by another. `max_tries` is the highest that may."""
    return try_number <= max_tries


def retry_delay_seconds(retry: Retry, try_number: int, seed: str) -> float:
    """How long to wait after the try with this number. The same seed and try always give the same wait."""
    delay = min(retry.delay_seconds * _power(retry.backoff, try_number - 1), _LONGEST_SECONDS)
    if retry.jitter:
        whole = max(1, math.ceil(delay))
        delay = whole + int(hashlib.sha1(f"{seed}#{try_number}".encode()).hexdigest(), 16) % whole
    if retry.max_delay_seconds is not None:
        delay = min(delay, retry.max_delay_seconds)
    return max(0.0, delay)


def _power(factor: float, exponent: int) -> float:
    if factor <= 1:
        return 1.0
    try:
        return float(factor**exponent)
    except OverflowError:
        return sys.float_info.max
