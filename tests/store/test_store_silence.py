"""A server that is there and does not answer: it is told of, and who only looks does not wait for it."""

from __future__ import annotations

import threading
import time

import pytest
from sqlalchemy import text

from headrace.actions.monitoring import store_readings
from headrace.clock import SystemClock
from headrace.errors import StoreUnreachableError
from headrace.store import Store
from headrace.store.sql import Sql

LONG_SECONDS = 30.0
LOCK = "LOCK TABLE {} IN ACCESS EXCLUSIVE MODE"
RUNS = Sql("SELECT count(*) FROM run")
ONE = Sql("SELECT 1")


@pytest.fixture
def store(prepared_postgres_url, monkeypatch):
    monkeypatch.setattr("headrace.store.postgres_line.SILENT_SECONDS", 0.02)
    store = Store(prepared_postgres_url)
    yield store
    store.dispose()


@pytest.fixture
def other(prepared_postgres_url):
    """Somebody else who uses the same database."""
    store = Store(prepared_postgres_url)
    yield store
    store.dispose()


def test_silence_is_an_outage_until_something_is_committed(store, other, caplog):
    answers = []

    def ask():
        with store.begin() as tx:
            answers.append(tx.run(RUNS))
        store.close()

    with other.begin() as tx:
        tx.execute(text(LOCK.format("run")))
        asking = threading.Thread(target=ask)
        asking.start()
        until = time.monotonic() + LONG_SECONDS
        while not store.outage.is_on:
            assert time.monotonic() < until
            time.sleep(0.005)
    asking.join(LONG_SECONDS)
    assert answers == [[(0,)]] and not store.outage.is_on
    told = [record.getMessage() for record in caplog.records if record.name == "headrace.store"]
    assert len(told) == 2
    assert "has not answered for 5 s" in told[0] and "works again after" in told[1]


def test_who_gives_up_is_told_so_and_can_ask_again(store, other):
    with other.begin() as locking:
        locking.execute(text(LOCK.format("run")))
        with pytest.raises(StoreUnreachableError, match="has not answered for 5 s"), store.read(gives_up=True) as tx:
            tx.run(RUNS)
    with store.read() as tx:
        assert tx.run(RUNS) == [(0,)]


def test_metrics_tell_that_the_store_is_silent_at_once_when_that_is_known(store, other):
    with other.begin() as tx:
        tx.execute(text(LOCK.format("task")))
        for _ in range(2):
            (reading,) = store_readings(store, SystemClock())
            assert (reading.family.name, reading.samples[0].value) == ("headrace_store_reachable", 0)
            assert store.outage.is_on
    with store.begin() as tx:
        tx.change(ONE)
    assert len(store_readings(store, SystemClock())) > 1
