"""Triggers: what a deferred task waits for. Many run in one process, so that their code must await, not block."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Hashable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, ClassVar


@dataclass
class StartTriggerArgs:
    """What a task that starts from its trigger waits for before anything of it runs, and how it goes on then."""

    trigger_cls: str
    next_method: str
    trigger_kwargs: dict[str, Any] | None = None
    next_kwargs: dict[str, Any] | None = None
    timeout: timedelta | None = None


class TriggerEvent:
    """What a trigger has to tell; the payload is handed to the task as `event`."""

    def __init__(self, payload: Any = None) -> None:
        self.payload = payload

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TriggerEvent) and vars(self) == vars(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"TriggerEvent<{self.payload!r}>"


class BaseTaskEndEvent(TriggerEvent):
    """Ends the task without another process of its own."""

    task_instance_state: ClassVar[str]

    def __init__(self, *, xcoms: dict[str, Any] | None = None) -> None:
        super().__init__(self.task_instance_state)
        self.xcoms = xcoms


class TaskSuccessEvent(BaseTaskEndEvent):
    """The task has succeeded, with these results."""

    task_instance_state = "success"


class TaskFailedEvent(BaseTaskEndEvent):
    """The task has failed; it is tried again if it has a try left."""

    task_instance_state = "failed"


class TaskSkippedEvent(BaseTaskEndEvent):
    """The task is skipped."""

    task_instance_state = "skipped"


class BaseTrigger(ABC):
    """Waits for something outside and tells by an event that it has happened.

    A task makes one and gives it to `defer`. There it is taken apart by `serialize`; elsewhere the named class is
    called with the same arguments, and that object runs. It may run twice, and anew after its process was lost.
    """

    # On the class, because the constructor of a subclass need not call this one.
    task_instance: Any = None
    """Tells task_id, dag_id, run_id, map_index and try_number of the task that waits, while the trigger runs."""
    trigger_id: int | None = None

    def __init__(self, **kwargs: Any) -> None:
        super().__init__()

    @abstractmethod
    def serialize(self) -> tuple[str, dict[str, Any]]:
        """The path of the class and the arguments by which it can be made again."""

    @abstractmethod
    def run(self) -> AsyncIterator[TriggerEvent]:
        """An async generator: the first event that it yields ends the wait."""

    async def cleanup(self) -> None:  # noqa: B027 (most triggers hold nothing)
        """Called whenever it stops running here, for whatever reason: let go of what this object holds."""

    async def on_kill(self) -> None:  # noqa: B027 (most triggers have no work that goes on elsewhere)
        """Called when the wait was given up, as by clearing the task or stopping its run: end the work outside."""

    @property
    def log(self) -> logging.Logger:
        """What is logged here goes to the log of the task that waits."""
        return logging.getLogger(f"{type(self).__module__}.{type(self).__qualname__}")

    def __repr__(self) -> str:
        path, kwargs = self.serialize()
        return f"<{path} {', '.join(f'{name}={value}' for name, value in kwargs.items())}>"


class BaseEventTrigger(BaseTrigger):
    """A trigger that may also watch an asset: each of its events updates it, and it begins anew whenever it ends."""

    asset_state_store: Any = None
    """What is kept for the asset that it watches, while it does."""

    def shared_stream_key(self) -> Hashable | None:
        """Triggers with the same key could share their looking; None: each looks for itself."""
        return None
