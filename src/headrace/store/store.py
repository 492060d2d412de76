"""The store: one database, prepared, with its wake-ups."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import TypeVar

from headrace.clock import Clock, Reading, SystemClock, best_offset, from_micros
from headrace.store.database import Database, Transaction
from headrace.store.news import NOTHING, News
from headrace.store.outage import Outage
from headrace.store.setup import prepare
from headrace.store.sql import Sql
from headrace.store.wakeups import NOTIFY, Wakeups, notification

T = TypeVar("T")

_READINGS = 3
_GOOD_READING = timedelta(milliseconds=0.5)
"""Where many processes start at once, they are often kept from their processors in the middle of a reading. One that
was so quick is good enough; otherwise the quickest of so many is taken."""

DATABASE_NOW = Sql("SELECT CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS bigint)")


class Store:
    """Everything that is true. Open it with a URL; transactions are the caller's."""

    def __init__(
        self, url: str, *, default_pool_slots: int = 128, must_exist: bool = False, lock_seconds: float = 0.0
    ) -> None:
        """An empty database gets the schema, unless it must exist. `lock_seconds` as `Database` has it."""
        self.database = Database(url, lock_seconds=lock_seconds)
        prepare(self.database, default_pool_slots, must_exist=must_exist)
        self.wakeups = Wakeups(self.database)

    @property
    def is_shared(self) -> bool:
        """Whether other machines may use it at the same time."""
        return self.database.dialect != "sqlite"

    @property
    def outage(self) -> Outage:
        """What the loops of this process tell of a database that is away."""
        return self.database.outage

    @contextmanager
    def begin(self) -> Iterator[Transaction]:
        """A transaction that may write."""
        with self.database.begin() as tx:
            yield tx
            self._notify(tx)
        if tx.news is not NOTHING:
            self.wakeups.announce(tx.news)

    @contextmanager
    def read(self, *, gives_up: bool = False) -> Iterator[Transaction]:
        """Statements that only read; `gives_up` as `Database` has it."""
        with self.database.read(gives_up=gives_up) as tx:
            yield tx

    def transact(self, work: Callable[[Transaction], T]) -> T:
        """Run `work` in a transaction, again if somebody else was first; then wake whoever waits for it."""

        def notifying(tx: Transaction) -> tuple[T, News]:
            result = work(tx)
            self._notify(tx)
            return result, tx.news

        result, news = self.database.transact(notifying)
        if news is not NOTHING:
            self.wakeups.announce(news)
        return result

    def _notify(self, tx: Transaction) -> None:
        if tx.news is not NOTHING and self.is_shared:
            tx.write(NOTIFY, notification(tx.news, tx.tasks_left))

    def clock_offset(self) -> timedelta:
        """How far this machine's clock is behind the database's, so that hosts with wrong clocks agree."""
        if not self.is_shared:
            return timedelta(0)
        readings: list[Reading] = []
        with self.read() as tx:
            while len(readings) < _READINGS and not any(one.took < _GOOD_READING for one in readings):
                readings.append(_read_clock(tx))
        return best_offset(readings)

    def correct(self, clock: Clock) -> None:
        """Set the system's clock, as this process sees it, by the database's."""
        if isinstance(clock, SystemClock):
            clock.offset = self.clock_offset()

    def close(self) -> None:
        """Close this thread's connection; other threads close their own."""
        self.database.close()

    def dispose(self) -> None:
        self.wakeups.stop()
        self.database.dispose()


def _read_clock(tx: Transaction) -> Reading:
    before, began = datetime.now(UTC), time.perf_counter()
    ((micros,),) = tx.run(DATABASE_NOW)
    return Reading(before, from_micros(micros), timedelta(seconds=time.perf_counter() - began))
