"""A task that asks for something while the database restarts gets its answer."""

from __future__ import annotations

import psycopg
import pytest

from headrace.agent import Broker
from headrace.executor.questions import LOADING
from headrace.handoff import Ask
from headrace.store import Store

CUT = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s AND pid <> pg_backend_pid()"


@pytest.fixture
def store(postgres_url):
    store = Store(postgres_url)
    yield store
    store.dispose()


def ask(broker, verb, **args):
    return broker(LOADING, Ask(id=1, verb=verb, args=args))


def test_a_connection_that_was_cut_costs_nothing(store, postgres_server, postgres_url):
    broker = Broker(store)
    assert ask(broker, "set_variable", name="a", value="1").error is None
    for _ in range(2):
        with psycopg.connect(postgres_server.url, autocommit=True) as admin:
            admin.execute(CUT, [postgres_url.rpartition("/")[2]])
        answer = ask(broker, "get_variable", name="a")
        assert (answer.error, bytes(answer.value)) == (None, b'"1"')


def test_who_asks_of_a_database_that_stays_away_is_told(store, postgres_server, monkeypatch):
    monkeypatch.setattr("headrace.agent.broker._PATIENCE_SECONDS", 0.3)
    broker = Broker(store)
    postgres_server.stop()
    try:
        answer = ask(broker, "get_variable", name="a")
    finally:
        postgres_server.start()
    assert "could not reach the database" in answer.error
    assert store.outage.seconds > 0.1
