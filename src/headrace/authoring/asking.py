"""Whom a file may ask while it is loaded: for variables and connections that it reads at its top level."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Protocol


class Engine(Protocol):
    """The way from user code to the engine. See `handoff.Channel` for the verbs."""

    def ask(self, verb: str, **args: Any) -> Any: ...


_engines: list[Engine] = []


def enter_loading(engine: Engine) -> None:
    """From now on, what a file asks for while no task is running is asked of this engine."""
    _engines[:] = [engine]


def leave_loading() -> None:
    _engines.clear()


def loading_engine() -> Engine | None:
    """Whom to ask while a file is loaded, or None."""
    return _engines[-1] if _engines else None


class Asking:
    """An engine behind a function that sends one question and waits for its answer, whichever thread asks."""

    def __init__(self, ask: Callable[[str, dict[str, Any]], Any]) -> None:
        self._ask = ask
        self._lock = threading.Lock()

    def ask(self, verb: str, **args: Any) -> Any:
        with self._lock:
            return self._ask(verb, args)
