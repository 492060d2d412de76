"""A task that asks for something while the database restarts gets its answer."""

from __future__ import annotations

import psycopg
import pytest

from headrace.agent import Broker
from headrace.executor.contract import Later
from headrace.executor.questions import LOADING, answer
from headrace.handoff import Ask
from headrace.logs import Masker
from headrace.store import Store

CUT = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s AND pid <> pg_backend_pid()"


@pytest.fixture
def store(prepared_postgres_url):
    store = Store(prepared_postgres_url)
    yield store
    store.dispose()


def ask(broker, verb, **args):
    return answer(broker, LOADING, Ask(id=1, verb=verb, args=args), Masker())


def test_a_connection_that_was_cut_costs_nothing(store, postgres_server, prepared_postgres_url):
    broker = Broker(store)
    assert ask(broker, "set_variable", name="a", value="1").error is None
    for _ in range(2):
        with psycopg.connect(postgres_server.url, autocommit=True) as admin:
            admin.execute(CUT, [prepared_postgres_url.rpartition("/")[2]])
        found = ask(broker, "get_variable", name="a")
        assert (found.error, bytes(found.value)) == (None, b'"1"')


def test_who_asks_of_a_database_that_stays_away_is_told(store, postgres_server, monkeypatch):
    for module in ("headrace.agent.broker", "headrace.executor.questions"):
        monkeypatch.setattr(f"{module}.PATIENCE_SECONDS", 0.3)
    broker = Broker(store)
    postgres_server.stop()
    try:
        with pytest.raises(Later, match="could not reach the database"):
            broker(LOADING, Ask(id=1, verb="get_variable", args={"name": "a"}))
        told = ask(broker, "get_variable", name="a")
        not_twice = ask(broker, "trigger_run", workflow="w")
    finally:
        postgres_server.start()
    assert "could not reach the database" in told.error and not_twice.error
    assert store.outage.seconds > 0.1
