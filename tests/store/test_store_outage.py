"""One line when the database goes away and one when it is back, however many threads notice."""

from __future__ import annotations

import logging
import threading

import psycopg
import pytest

from headrace.errors import StoreUnreachableError
from headrace.store import Store
from headrace.store.outage import Outage
from headrace.store.sql import Sql

AWAY = StoreUnreachableError("could not reach the database `x`: refused")
ANYTHING = Sql("SELECT 1")
CUT = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s AND pid <> pg_backend_pid()"
LONG_SECONDS = 30.0


@pytest.fixture
def lines(caplog):
    caplog.set_level(logging.INFO, "headrace.store")
    return lambda: [record.getMessage() for record in caplog.records if record.name == "headrace.store"]


def test_an_outage_is_two_lines(lines):
    outage = Outage("x")
    for _ in range(3):
        outage.met(AWAY)
    outage.end()
    outage.end()
    began, ended = lines()
    assert began == "waiting for the database: could not reach the database `x`: refused"
    assert ended == "the database `x` works again after 0.0 s"
    outage.met(AWAY)
    assert len(lines()) == 3


def test_waits_grow_within_a_bound(monkeypatch):
    now = [1000.0]
    monkeypatch.setattr("headrace.store.outage.time.monotonic", lambda: now[0])
    outage = Outage("x")
    first = outage.met(AWAY, 0.5)
    now[0] += 2.0
    later = outage.met(AWAY, 0.5)
    now[0] += 1000.0
    assert 0.35 <= first <= 0.5 < later <= 1.5 < outage.met(AWAY, 0.5) <= 3.0
    assert outage.met(AWAY, 0.0) == 0.0


def test_what_was_committed_ends_it_and_what_was_read_does_not(prepared_url, lines):
    store = Store(prepared_url)
    store.outage.met(AWAY)
    with store.read() as tx:
        tx.run(ANYTHING)
    assert store.outage.is_on
    store.transact(lambda tx: tx.run(ANYTHING))
    assert not store.outage.is_on and len(lines()) == 2
    store.dispose()


def test_what_broke_one_connection_is_not_met_again_by_another_thread(postgres_url, postgres_server):
    """A thread that had nothing to do while the server was restarted reads as if nothing had happened."""
    store = Store(postgres_url)
    is_connected, may_go_on, read = threading.Event(), threading.Event(), []

    def look_twice():
        for _ in range(2):
            with store.read() as tx:
                read.append(tx.run(ANYTHING))
            is_connected.set()
            may_go_on.wait(LONG_SECONDS)
        store.close()

    idle = threading.Thread(target=look_twice)
    idle.start()
    is_connected.wait(LONG_SECONDS)
    with store.read() as tx:
        tx.run(ANYTHING)
    with psycopg.connect(postgres_server.url, autocommit=True) as admin:
        admin.execute(CUT, [postgres_url.rpartition("/")[2]])
    with pytest.raises(StoreUnreachableError), store.read() as tx:
        tx.run(ANYTHING)
    may_go_on.set()
    idle.join()
    assert read == [[(1,)], [(1,)]]
    store.dispose()
