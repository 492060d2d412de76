"""Executors as the settings want them; apart from `parts`, because one may start before the database is needed."""

from __future__ import annotations

from headrace.executor import Broker, LocalExecutor, LocalOptions
from headrace.handoff import Answer, Ask, TaskRequest
from headrace.settings import Settings


class LateBroker:
    """Lets an executor start before there is anybody who could answer; nothing asks before the first task runs."""

    def __init__(self) -> None:
        self.broker: Broker | None = None

    def __call__(self, request: TaskRequest, ask: Ask) -> Answer:
        if self.broker is None:
            return Answer(id=ask.id, error="the store is not open yet")
        return self.broker(request, ask)


def local_executor(settings: Settings, broker: Broker, slots: int | None = None) -> LocalExecutor:
    """Processes on this machine."""
    options = LocalOptions(
        load_timeout_seconds=settings.parser.timeout_seconds,
        max_zygotes=settings.agent.max_zygotes,
        tries_per_process=settings.agent.reuse_limit,
    )
    return LocalExecutor(broker, slots or settings.agent.slots, options)
