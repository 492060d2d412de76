"""Executors as the settings want them; apart from `parts`, because one may start before the database is needed."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from typing import Protocol

from headrace.executor import LocalExecutor, LocalOptions
from headrace.executor.questions import answer_loading
from headrace.handoff import Answer, Ask, Source, TaskRequest
from headrace.logs import Masker, MaskingRules, Output
from headrace.settings import Settings
from headrace.user_environment import environment_of_user_code

_OPENING_SECONDS = 30.0


class StoreBroker(Protocol):
    """Answers for the store: the questions of user code, and what was kept of a revision."""

    def __call__(self, request: TaskRequest, ask: Ask) -> Answer: ...

    def content(self, source: Source) -> bytes | None: ...

    def while_loading(self, ask: Ask) -> Answer: ...


class LateBroker:
    """Lets an executor start before there is anybody who could answer; nothing asks before the first task runs."""

    def __init__(self) -> None:
        self._broker: StoreBroker | None = None
        self._is_there = threading.Event()

    @property
    def broker(self) -> StoreBroker | None:
        return self._broker

    @broker.setter
    def broker(self, broker: StoreBroker) -> None:
        self._broker = broker
        self._is_there.set()

    def while_loading(self, ask: Ask) -> Answer:
        """A file may be loaded, in a thread of its own, before the store is open: that is waited for."""
        self._is_there.wait(_OPENING_SECONDS)
        if self._broker is None:
            return Answer(id=ask.id, error="the store is not open yet")
        return self._broker.while_loading(ask)

    def __call__(self, request: TaskRequest, ask: Ask) -> Answer:
        if self.broker is None:
            return Answer(id=ask.id, error="the store is not open yet")
        return self.broker(request, ask)

    def content(self, source: Source) -> bytes | None:
        """Before the store is open, only the file on disk is known."""
        return None if self.broker is None else self.broker.content(source)


class LoadingAnswers:
    """What files ask for while they are loaded, and their secrets, which nothing that they print may show."""

    def __init__(self, settings: Settings, broker: StoreBroker) -> None:
        self._broker = broker
        self._masker = Masker(rules=MaskingRules.of(settings.secrets))

    def __call__(self, ask: Ask) -> Answer:
        return answer_loading(self._broker.while_loading, ask, self._masker)

    def hide(self, text: str) -> str:
        return self._masker.mask_text(text)


def local_executor(
    settings: Settings,
    broker: StoreBroker,
    slots: int | None = None,
    environment: Mapping[str, str] | None = None,
    output: Output | None = None,
) -> LocalExecutor:
    """Processes on this machine, with these variables beside this process's own. `output` is told what they print."""
    options = LocalOptions(
        load_timeout_seconds=settings.parser.timeout_seconds,
        max_zygotes=settings.agent.max_zygotes,
        tries_per_process=settings.agent.reuse_limit,
        limit_bytes=settings.limits.max_value_bytes,
        masking=MaskingRules.of(settings.secrets),
        environment=environment_of_user_code(
            {**os.environ, **(environment or {})}, with_store_password=settings.agent.passes_store_password
        ),
        output=output,
    )
    return LocalExecutor(
        broker, slots or settings.agent.slots, options, contents=broker.content, questions=broker.while_loading
    )
