"""Where runs and tries are in OpenTelemetry's traces.

Ids follow from what a run and a try are, so that a task can name the span of its try as its parent long before anybody
has made that span, and in another process.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from datetime import datetime
from typing import NamedTuple

VARIABLE = "TRACEPARENT"
"""The variable of the environment that programs look for."""
_ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")


class TracedAttempt(NamedTuple):
    """What tells one attempt from all others, also from those of another installation with the same workflows."""

    project: str
    workflow: str
    run_id: int
    attempt_number: int
    created_at: datetime

    @property
    def trace_id(self) -> int:
        """One trace per attempt."""
        return self._hash(16)

    def pass_id(self, began: datetime) -> int:
        """The span of one pass over it: from its start, or from where it was cleared, to its end."""
        return self._hash(8, "pass", began)

    def try_id(self, task_id: int, fence: int) -> int:
        """The span of one try."""
        return self._hash(8, "try", task_id, fence)

    def traceparent(self, task_id: int, fence: int) -> str:
        """The span of a try, as W3C's trace context writes it."""
        return f"00-{self.trace_id:032x}-{self.try_id(task_id, fence):016x}-01"

    def _hash(self, size: int, *more: object) -> int:
        text = "\0".join(map(str, (*self, *more)))
        # Zero stands for no id at all.
        return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=size).digest(), "big") or 1


def is_tracing_wanted(environ: Mapping[str, str]) -> bool:
    """Whether OpenTelemetry's own variables say that traces go somewhere."""
    exporter = environ.get("OTEL_TRACES_EXPORTER", "").strip().lower()
    if environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true" or exporter == "none":
        return False
    if exporter:
        return True
    # Every try asks; a function that is made for the question is more pages to copy than the answer.
    for name in _ENDPOINTS:
        if environ.get(name):
            return True
    return False
