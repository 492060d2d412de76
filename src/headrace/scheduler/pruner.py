"""Deletes what is too old: runs that ended long ago, logs, what files said then, events, memos, lost processes."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from functools import partial

from headrace.clock import to_micros
from headrace.store import (
    Store,
    Transaction,
    delete_run,
    forget_agents,
    forget_definitions,
    forget_events,
    forget_expired_memos,
    old_runs,
    project_ids,
    run_logs,
    sweep_leftovers,
)

_log = logging.getLogger("headrace.scheduler")

DeleteLogs = Callable[[Sequence[str]], None]
"""Deletes logs, given as paths below the folder for logs; those that are not there do not matter."""

_AGENTS_STAY = timedelta(days=1)
_EVENTS_AT_ONCE = 1000
_DEFINITIONS_AT_ONCE = 100
_PIECES = 20
"""How many pieces of large runs are swept up in a tick; the next one comes after a pause."""


def keep_logs(paths: Sequence[str]) -> None:
    """For whoever cleans up logs by other means."""


class Pruner:
    name = "pruner"

    def __init__(
        self, store: Store, *, retention_days: int | None, delete_logs: DeleteLogs = keep_logs, batch_size: int = 50
    ) -> None:
        """`retention_days` None: runs are kept forever."""
        self._store = store
        self._retention_days = retention_days
        self._delete_logs = delete_logs
        self._batch_size = batch_size

    def tick(self, now: datetime) -> int:
        """How many runs, definitions, events, memos and processes were forgotten. Each step is a small transaction."""
        forgotten = self._store.transact(partial(_forget_expired, now=now))
        forgotten += self._sweep(_PIECES)
        if self._retention_days is None:
            return forgotten
        before = to_micros(now - timedelta(days=self._retention_days))
        with self._store.read() as tx:
            runs, projects = old_runs(tx, before, self._batch_size), project_ids(tx)
        forgotten += sum(self._delete(run_id, before) for run_id in runs)
        for project_id in projects:
            forgotten += self._store.transact(
                partial(forget_definitions, project_id=project_id, before=before, limit=_DEFINITIONS_AT_ONCE)
            )
        return forgotten + self._store.transact(partial(forget_events, before=before, limit=_EVENTS_AT_ONCE))

    def _sweep(self, pieces: int) -> int:
        """What is left of large runs. Returns how many pieces were done."""
        for done in range(pieces):
            if not self._store.transact(sweep_leftovers):
                return done
        return pieces

    def _delete(self, run_id: int, before: int) -> bool:
        with self._store.read() as tx:
            logs = run_logs(tx, run_id)
        # The logs go first: after a crash in between, the run is still there to say which logs are left.
        try:
            self._delete_logs(logs)
        except OSError as error:
            _log.warning("could not delete the logs of run %d: %s", run_id, error)
            return False
        return self._store.transact(partial(delete_run, run_id=run_id, before=before))


def _forget_expired(tx: Transaction, now: datetime) -> int:
    """What goes by itself, whatever is said about runs."""
    return forget_agents(tx, before=to_micros(now - _AGENTS_STAY)) + forget_expired_memos(tx, to_micros(now))
