"""PostgreSQL ends the transaction of a process that froze, and the process takes that as a lost connection."""

from __future__ import annotations

import time

import pytest
from cluster import LONG_SECONDS

from headrace.errors import StoreUnreachableError
from headrace.store import Store
from headrace.store.database import FROZEN_SECONDS
from headrace.store.sql import Sql

LIMIT = Sql("SHOW idle_in_transaction_session_timeout")
SHORTER = Sql("SET LOCAL idle_in_transaction_session_timeout = '20ms'")


@pytest.fixture
def store(prepared_postgres_url):
    store = Store(prepared_postgres_url)
    yield store
    store.dispose()


def test_every_connection_has_the_limit(store):
    with store.read() as tx:
        assert tx.run(LIMIT) == [(f"{FROZEN_SECONDS}s",)]
    with store.begin() as tx:
        assert tx.run(LIMIT) == [(f"{FROZEN_SECONDS}s",)]


def test_whoever_was_frozen_has_lost_its_connection(store):
    with pytest.raises(StoreUnreachableError, match="could not reach the database"), store.begin() as tx:
        tx.run(SHORTER)
        until = time.monotonic() + LONG_SECONDS
        while time.monotonic() < until:
            time.sleep(0.05)
            tx.run(LIMIT)
    with store.begin() as tx:
        assert tx.run(LIMIT) == [(f"{FROZEN_SECONDS}s",)]
