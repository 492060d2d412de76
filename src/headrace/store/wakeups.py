"""Events wake, polling insures: how a loop learns that there may be something to do.

In one process a condition wakes the others. Between processes PostgreSQL sends notifications with the commit, to those
who listen to such news, and SQLite's `data_version` tells cheaply that another process has committed. Nothing is
correct because of a wake-up.
"""

from __future__ import annotations

import logging
import random
import select
import threading
import time
from collections.abc import Callable
from functools import reduce
from operator import or_
from typing import Any, NamedTuple

from headrace.errors import HeadraceError, SchemaError
from headrace.store.database import Database
from headrace.store.news import NOTHING, News
from headrace.store.sql import Sql
from headrace.store.turns import Told

NOTIFY = Sql("SELECT pg_notify(channel, :told) FROM unnest(string_to_array(:channels, ' ')) AS told (channel)")
SQLITE_POLL_SECONDS = 0.2
_LISTEN_SECONDS = 1.0
_NUMBERS = 1 << 16
_log = logging.getLogger("headrace.store")


Wait = Callable[[Told], float]
"""For how many seconds a listener leaves it to others to answer what another process has told."""


class _Listener(NamedTuple):
    call: Callable[[], None]
    news: News
    wait: Wait | None


class Wakeups:
    """Calls its listeners when this or another process changed something that they wait for."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._listeners: list[_Listener] = []
        self._later: dict[_Listener, float] = {}
        """When the turns of those come who wait."""
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def subscribe(self, listener: Callable[[], None], news: News = News.ALL, wait: Wait | None = None) -> None:
        """Have a thread-safe function called after each commit that is news of one of these kinds.

        With `wait`: so much later, if another process has told it to all at once.
        """
        self._listeners.append(_Listener(listener, news, wait))

    def announce(self, news: News = News.ALL) -> None:
        """Wake whoever in this process waits for such news."""
        for listener in self._listeners:
            if news & listener.news:
                listener.call()

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
            except SchemaError as error:
                # It does not end by waiting: whoever is woken meets it, too, and ends the process.
                _log.debug("lost the database: %s", error)
                self.announce()
                self._stop.wait(1.0)
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
            arrivals = select.poll()
            arrivals.register(driver.fileno(), select.POLLIN)
            heard = NOTHING
            while not self._stop.is_set():
                for kind in self._wanted() & ~heard:
                    tx.run(_LISTEN[kind])
                    heard |= kind
                arrivals.poll(self._until_next_turn() * 1000)
                self._take_arrived(driver.pgconn)
                self._call_whose_turn_has_come()

    def _take_arrived(self, pgconn: Any) -> None:
        """Asked of libpq itself: the driver's own way takes twice as long, once for each news and process."""
        pgconn.consume_input()
        while (one := pgconn.notifies()) is not None:
            # What this process has committed itself was announced when it was committed.
            if one.be_pid not in self._database.sessions:
                self._hear(_KINDS[one.relname.decode()], _told(one.extra.decode()))

    def _wanted(self) -> News:
        """Whoever subscribes later is heard of after the next news, or after a second."""
        return reduce(or_, (listener.news for listener in self._listeners), NOTHING)

    def _hear(self, kind: News, told: Told) -> None:
        now = time.monotonic()
        for listener in self._listeners:
            if kind & listener.news:
                at = now + (listener.wait(told) if listener.wait is not None else 0.0)
                self._later[listener] = min(at, self._later.get(listener, at))

    def _until_next_turn(self) -> float:
        return max(0.0, min([_LISTEN_SECONDS, *(at - time.monotonic() for at in self._later.values())]))

    def _call_whose_turn_has_come(self) -> None:
        now = time.monotonic()
        for listener in [one for one, at in self._later.items() if at <= now]:
            del self._later[listener]
            listener.call()


def notification(news: News, tasks: int | None) -> dict[str, str]:
    """The parameters of NOTIFY."""
    counted = "" if tasks is None else str(tasks)
    return {"channels": _channels(news), "told": f"{counted} {random.randrange(_NUMBERS)}"}


def _told(payload: str) -> Told:
    tasks, _, number = payload.partition(" ")
    return Told(int(tasks) if tasks else None, int(number or 0))


def _channels(news: News) -> str:
    """Where others listen to such news, as NOTIFY takes it."""
    return " ".join(_channel(kind) for kind in news)


def _channel(kind: News) -> str:
    assert kind.name is not None
    return f"headrace_{kind.name.lower()}"


_KINDS = {_channel(kind): kind for kind in News.ALL}
_LISTEN = {kind: Sql(f"LISTEN {channel}") for channel, kind in _KINDS.items()}
