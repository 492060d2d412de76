"""Executors as the settings want them; apart from `parts`, because one may start before the database is needed."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Protocol

from headrace.executor import LocalExecutor, LocalOptions
from headrace.handoff import Answer, Ask, Source, TaskRequest
from headrace.settings import Settings


class StoreBroker(Protocol):
    """Answers for the store: the questions of user code, and what was kept of a revision."""

    def __call__(self, request: TaskRequest, ask: Ask) -> Answer: ...

    def content(self, source: Source) -> bytes | None: ...


class LateBroker:
    """Lets an executor start before there is anybody who could answer; nothing asks before the first task runs."""

    def __init__(self) -> None:
        self.broker: StoreBroker | None = None

    def __call__(self, request: TaskRequest, ask: Ask) -> Answer:
        if self.broker is None:
            return Answer(id=ask.id, error="the store is not open yet")
        return self.broker(request, ask)

    def content(self, source: Source) -> bytes | None:
        """Before the store is open, only the file on disk is known."""
        return None if self.broker is None else self.broker.content(source)


def local_executor(
    settings: Settings,
    broker: StoreBroker,
    slots: int | None = None,
    environment: Mapping[str, str] | None = None,
) -> LocalExecutor:
    """Processes on this machine, with these variables beside those of this process."""
    options = LocalOptions(
        environment={**os.environ, **environment} if environment else None,
        load_timeout_seconds=settings.parser.timeout_seconds,
        max_zygotes=settings.agent.max_zygotes,
        tries_per_process=settings.agent.reuse_limit,
        limit_bytes=settings.limits.max_value_bytes,
    )
    return LocalExecutor(broker, slots or settings.agent.slots, options, contents=broker.content)
