"""Logs one line for each run that starts or ends, whichever process made it."""

from __future__ import annotations

import logging
import threading

from headrace.actions.wording import error_line
from headrace.errors import HeadraceError
from headrace.store import RunChange, Store, Transaction, failed_tasks, last_event_id, run_changes

_log = logging.getLogger("headrace.runs")

_LOOK_SECONDS = 0.5
_OVERLAP = 500
"""Events of transactions that ran at the same time become visible in another order than that of their ids."""


_EXPLAINED = 20
"""Of so many runs that failed since the last look it is told why. Of more than that nobody reads it."""


class RunJournal:
    """Looks at what happened since its last look, if somebody announced that anything did."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._is_news = threading.Event()
        self._must_end = threading.Event()
        self._last = 0
        self._told: set[int] = set()
        self._thread = threading.Thread(target=self._live, name="headrace-journal", daemon=True)

    def start(self) -> None:
        with self._store.read() as tx:
            self._last = last_event_id(tx)
            self._told = {change.event_id for change in run_changes(tx, self._last - _OVERLAP)}
        self._store.wakeups.subscribe(self._is_news.set)
        self._thread.start()

    def stop(self) -> None:
        self._must_end.set()
        self._is_news.set()
        self._thread.join()

    def look(self) -> list[str]:
        """One line for each change that was not told yet."""
        with self._store.read() as tx:
            changes = run_changes(tx, self._last - _OVERLAP)
            fresh = [change for change in changes if change.event_id not in self._told]
            failed = [change for change in fresh if change.state == "failed"][:_EXPLAINED]
            causes = {change.event_id: _cause(tx, change.attempt_id) for change in failed}
        self._last = max([self._last, *(change.event_id for change in changes)])
        self._told = {change.event_id for change in changes if change.event_id > self._last - _OVERLAP}
        return [f"{_line(change)}{causes.get(change.event_id, '')}" for change in fresh]

    def _live(self) -> None:
        while not self._must_end.is_set():
            self._is_news.wait()
            self._must_end.wait(_LOOK_SECONDS)
            self._is_news.clear()
            try:
                for line in self.look():
                    _log.info("%s", line)
            except HeadraceError:
                # The parts that need the database say so; whatever happened meanwhile is told afterwards.
                self._must_end.wait(_LOOK_SECONDS)
                self._is_news.set()
        self._store.close()


def _cause(tx: Transaction, attempt_id: int) -> str:
    """Which task made a run fail, and why."""
    tasks = failed_tasks(tx, attempt_id)
    parents = {task.parent_id for task in tasks}
    task = next((task for task in tasks if task.id not in parents), None)
    return "" if task is None else f": `{task.name}`: {error_line(task)}"


def _line(change: RunChange) -> str:
    verb = "started" if change.state == "running" else f"ended: {change.state}"
    return f"run {change.run_id} of `{change.workflow}` {verb}" + (f" ({change.reason})" if change.reason else "")
