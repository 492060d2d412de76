"""How simulated tries end: by luck, in every way that a try can end."""

from __future__ import annotations

from random import Random
from typing import Any

import msgspec

from headrace.definition import NOOP, Deferral
from headrace.handoff import RETURN_VALUE, TaskError, TaskRequest, TaskResult
from headrace.testing.random_assets import random_event
from headrace.testing.random_workflows import fragment


class Endings:
    """Called with a request: how long its try takes and what it reports."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self.is_calm = False
        """Nothing is updated any more, so that everything comes to its end."""

    def __call__(self, request: TaskRequest) -> tuple[float, TaskResult]:
        seconds = self._random.choice((0.0, 0.0, 0.5, 2.0, 10.0, 40.0))
        return seconds, TaskResult(task_id=request.task_id, fence=request.fence, **self._ending(request))

    def _ending(self, request: TaskRequest) -> dict[str, Any]:
        choice = self._random.random()
        if request.errand is not None:
            return {"outcome": "success"} if choice < 0.6 else self._failure()
        if request.node.operator == NOOP:
            return {"outcome": "success"}
        if choice < 0.58:
            return self._success(request)
        if choice < 0.80:
            return self._failure()
        if choice < 0.86:
            return {"outcome": "skipped"}
        if choice < 0.97 and request.resume is None:
            seconds = self._random.choice((0.0, 5.0, None, None))
            return {"outcome": "deferred", "deferral": Deferral(trigger="a.Trigger", timeout_seconds=seconds)}
        if request.poll_state.get("calls", 0) < 2:
            calls = request.poll_state.get("calls", 0) + 1
            seconds = self._random.choice((0.0, 5.0))
            return {"outcome": "again", "again_after_seconds": seconds, "poll_state": {"calls": calls}}
        return {"outcome": "success"}

    def _success(self, request: TaskRequest) -> dict[str, Any]:
        fields: dict[str, Any] = {"outcome": "success"}
        if request.has_map_consumers or self._random.random() < 0.2:
            length = self._random.randint(0, 3)
            fields["values"] = {RETURN_VALUE: msgspec.Raw(msgspec.json.encode(list(range(length))))}
            fields["lengths"] = {RETURN_VALUE: length}
        if self._random.random() < 0.25 and not self.is_calm:
            fields["events"] = (random_event(self._random),)
        choice = self._random.random()
        if choice < 0.12 and "^" not in request.key:
            fields["growth"] = fragment(self._random, f"{request.key}^sub")
        elif choice < 0.17:
            fields["followed"] = ()
        elif choice < 0.22:
            fields["store"] = {"x": choice}
        return fields

    def _failure(self) -> dict[str, Any]:
        return {
            "outcome": "failed",
            "error": TaskError(type="ValueError", message="by luck"),
            "is_retryable": self._random.random() < 0.8,
            "has_died": self._random.random() < 0.3,
            "retry_after_seconds": self._random.choice((None, None, None, 0.0, 3.0)),
        }
