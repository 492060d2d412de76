"""Events wake, polling insures: how a loop learns that there may be something to do.

In one process a condition wakes the others. Between processes PostgreSQL sends notifications with the commit, to those
who listen to such news, and SQLite's `data_version` tells cheaply that another process has committed. Nothing is
correct because of a wake-up.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from functools import reduce
from operator import or_
from typing import Any

from headrace.errors import HeadraceError
from headrace.store.database import Database
from headrace.store.news import NOTHING, News
from headrace.store.sql import Sql

NOTIFY = Sql("SELECT pg_notify(channel, '') FROM unnest(string_to_array(:channels, ' ')) AS told (channel)")
SQLITE_POLL_SECONDS = 0.2
_log = logging.getLogger("headrace.store")


class Wakeups:
    """Calls its listeners when this or another process changed something that they wait for."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._listeners: list[tuple[Callable[[], None], News]] = []
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def subscribe(self, listener: Callable[[], None], news: News = News.ALL) -> None:
        """Have a thread-safe function called after each commit that is news of one of these kinds."""
        self._listeners.append((listener, news))

    def announce(self, news: News = News.ALL) -> None:
        """Wake whoever in this process waits for such news."""
        for listener, wanted in self._listeners:
            if news & wanted:
                listener()

    def start(self) -> None:
        """Begin to listen to other processes."""
        self._thread = threading.Thread(target=self._listen, name="headrace-wakeups", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        if self._thread is not None:
            self._thread.join()

    def _listen(self) -> None:
        listen = self._poll_sqlite if self._database.dialect == "sqlite" else self._listen_postgres
        while not self._stop.is_set():
            try:
                listen()
            except (HeadraceError, OSError) as error:
                _log.debug("lost the wake-up connection: %s", error)
                self._database.close()
                self._stop.wait(1.0)
            except Exception as error:
                _log.warning("lost the wake-up connection: %s", error)
                self._database.close()
                self._stop.wait(1.0)

    def _poll_sqlite(self) -> None:
        version = Sql("PRAGMA data_version")
        last: Any = None
        while not self._stop.wait(SQLITE_POLL_SECONDS):
            with self._database.read() as tx:
                ((current,),) = tx.run(version)
            if last is not None and current != last:
                self.announce()
            last = current

    def _listen_postgres(self) -> None:
        with self._database.read() as tx:
            driver: Any = tx.connection.connection.driver_connection
            heard = NOTHING
            while not self._stop.is_set():
                for kind in self._wanted() & ~heard:
                    driver.execute(f"LISTEN {_channel(kind)}")
                    heard |= kind
                # What this process has committed itself was announced when it was committed.
                news = NOTHING
                for one in driver.notifies(timeout=1.0, stop_after=1):
                    if one.pid not in self._database.sessions:
                        news |= _KINDS[one.channel]
                self.announce(news)

    def _wanted(self) -> News:
        """Whoever subscribes later is heard of after the next news, or after a second."""
        return reduce(or_, (news for _, news in self._listeners), NOTHING)


def channels(news: News) -> str:
    """Where others listen to such news, as NOTIFY takes it."""
    return " ".join(_channel(kind) for kind in news)


def _channel(kind: News) -> str:
    assert kind.name is not None
    return f"headrace_{kind.name.lower()}"


_KINDS = {_channel(kind): kind for kind in News.ALL}
