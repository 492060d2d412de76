"""A scheduler that sees nothing to do has nothing to do: its services find nothing, even if they are asked."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from headrace.clock import to_micros
from headrace.scheduler import Beat, SchedulerOptions, beats_of
from headrace.store import Outlook, Store, Transaction, look_ahead, start_queued_runs_of
from headrace.store.sql import Sql
from headrace.testing.recounting import Violation

QUEUED = Sql("SELECT id FROM run WHERE state = 'queued' ORDER BY id")
BY_DESIGN = ("rescuer", "age keeper", "watcher keeper", "pruner")
"""What comes at times of its own, because nothing that is committed tells that it is due: leases and ages run out, an
asset is to be watched, something is old enough to be deleted. The reviver does, too, and is to find nothing ever."""


class QuietCheck:
    """Asks every service at moments at which the outlook has nothing for it. A change then is one that would have had
    to wait until something else happens."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._beats = [beat for beat in beats_of(store, SchedulerOptions()) if beat.service.name not in BY_DESIGN]

    def check(self, seen: Outlook, now: datetime, workflow_ids: Iterable[int]) -> None:
        """Raise a Violation if there is something to do of which a scheduler does not know.

        `seen` is what one has seen that looked after the last commit. It sleeps since, until what is due next, and then
        looks again.
        """
        outlook = self._look(now) if seen.next_at is not None and seen.next_at <= to_micros(now) else seen
        for beat in self._beats:
            if beat.every_seconds or not beat.has_work(outlook, now):
                self._expect_nothing(beat, outlook, now)
        if not outlook.has_startable_runs:
            self._expect_no_start(outlook, now, workflow_ids)

    def _look(self, now: datetime) -> Outlook:
        with self._store.read() as tx:
            return look_ahead(tx, to_micros(now))

    def _expect_nothing(self, beat: Beat, outlook: Outlook, now: datetime) -> None:
        commits = self._store.database.commits
        done = beat.service.tick(now)
        # The reviver may commit that it found nothing; the others find that out before.
        has_changed = not beat.every_seconds and self._store.database.commits != commits
        if done or has_changed:
            raise Violation(f"the {beat.service.name} had {done} things to do, and nothing told it so: {outlook}")

    def _expect_no_start(self, outlook: Outlook, now: datetime, workflow_ids: Iterable[int]) -> None:
        """By the transaction that starts runs, as the service asks the same question as the outlook."""

        def start(tx: Transaction) -> list[int]:
            queued = {row[0] for row in tx.run(QUEUED)}
            start_queued_runs_of(tx, sorted(workflow_ids), to_micros(now))
            return sorted(queued.difference(row[0] for row in tx.run(QUEUED)))

        started = self._store.transact(start)
        if started:
            raise Violation(f"runs {started} could start, and nothing told a scheduler so: {outlook}")
