"""What a triggerer and the process in which triggers run say to each other, all JSON."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from headrace.definition import Data, keep_storable
from headrace.handoff.messages import Answer, Ask, TaskError, TaskRequest


class RunTrigger(Data, frozen=True, kw_only=True, tag="run"):
    """Make this trigger and run it."""

    id: int
    path: str
    arguments: dict[str, Any] = {}
    request: TaskRequest
    """About the task that waits."""
    is_given_up: bool = False
    """Nobody waits any more: only its `on_kill` is to be called."""
    asset: str = ""
    """It watches this asset: all its events are told, and it begins anew whenever it ends."""


class StopTrigger(Data, frozen=True, kw_only=True, tag="stop"):
    """Stop running a trigger; `Stopped` answers."""

    id: int
    is_given_up: bool = False
    """Call its `on_kill` as well."""


class Fired(Data, frozen=True, kw_only=True, tag="fired"):
    """What a trigger had to tell. It is the last of one that a task waits for, but for its log and `Stopped`."""

    trigger_id: int
    event: Any = None
    """The payload, in JSON form."""
    error: TaskError | None = None
    """It failed instead."""
    outcome: Literal["", "success", "failed", "skipped"] = ""
    """How it ends the task; empty: the task is to go on by itself."""
    values: dict[str, msgspec.Raw] = {}
    """Named results of the task that it ends, each already JSON."""
    lengths: dict[str, int] = {}
    number: int = 0
    """Of an event of a watcher, by which it is known when it is told again; the triggerer that hears it counts."""


class Stopped(Data, frozen=True, kw_only=True, tag="stopped"):
    """A trigger runs no longer, and has cleaned up."""

    trigger_id: int


class Logged(Data, frozen=True, kw_only=True, tag="logged"):
    """Whole lines for the log of the task that waits."""

    trigger_id: int
    text: str

    def __post_init__(self) -> None:
        keep_storable(self, "text")


class Asked(Data, frozen=True, kw_only=True, tag="asked"):
    """A question of a trigger's code; an `Answer` with its id comes back."""

    trigger_id: int
    """0: of code that belongs to no trigger."""
    ask: Ask


ToTriggers = RunTrigger | StopTrigger | Answer
FromTriggers = Fired | Stopped | Logged | Asked
