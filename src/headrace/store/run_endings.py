"""Tells who wants to know of each run whose end this process has committed."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from headrace.metrics.catalogue import RUNS_ENDED
from headrace.state import Attempt
from headrace.store.database import Transaction

Listener = Callable[[int], None]
"""Called with the id of an attempt, on the thread that has committed its end; it must not wait."""


class RunEndings:
    """One per database and process: `tx.shared(RunEndings)`."""

    def __init__(self) -> None:
        self._listeners: list[Listener] = []

    def subscribe(self, listener: Listener) -> None:
        self._listeners.append(listener)

    def note(self, tx: Transaction, attempt: Attempt) -> None:
        """This attempt has ended if the transaction is committed."""
        tx.after_commit.append(partial(self._tell, attempt.id, attempt.state))

    def _tell(self, attempt_id: int, state: str) -> None:
        RUNS_ENDED.add(state)
        for listener in self._listeners:
            listener(attempt_id)
