"""Who waits for a lock that another session keeps, for how long, and what is said to people."""

from __future__ import annotations

import threading
import time

import psycopg
import pytest

from headrace.cli import opening
from headrace.cli.main import run_command
from headrace.errors import StoreLockedError
from headrace.store import Store, list_runs

SECONDS = 0.05
LONG_SECONDS = 30.0
WAITING = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"


@pytest.fixture
def locked(prepared_postgres_url):
    """The database, while another session keeps its tables of runs and tasks to itself."""
    with psycopg.connect(prepared_postgres_url) as other:
        other.execute("LOCK TABLE run, task IN ACCESS EXCLUSIVE MODE")
        yield prepared_postgres_url


def list_all(tx):
    return list_runs(tx, limit=1)


def test_who_sets_a_limit_gives_up_and_says_why(locked):
    store = Store(locked, must_exist=True, lock_seconds=SECONDS)
    with (
        pytest.raises(StoreLockedError, match=r"after 0\.05 s: another session keeps a lock") as caught,
        store.read() as tx,
    ):
        list_all(tx)
    assert "pg_stat_activity" in caught.value.hint
    with pytest.raises(StoreLockedError):
        store.transact(list_all)
    store.dispose()


def test_the_same_connection_goes_on_when_the_lock_is_free(prepared_postgres_url):
    store = Store(prepared_postgres_url, must_exist=True, lock_seconds=SECONDS)
    with psycopg.connect(prepared_postgres_url) as other:
        other.execute("LOCK TABLE run IN ACCESS EXCLUSIVE MODE")
        with pytest.raises(StoreLockedError), store.read() as tx:
            list_all(tx)
    with store.read() as tx:
        assert list_all(tx) == []
    assert len(store.database.sessions) == 1
    store.dispose()


def test_the_loops_of_the_engine_wait_until_the_lock_is_free(prepared_postgres_url):
    store, found = Store(prepared_postgres_url, must_exist=True), []
    with store.read(gives_up=True) as tx:
        list_all(tx)

    def look():
        found.append(store.transact(list_all))
        store.close()

    with (
        psycopg.connect(prepared_postgres_url) as other,
        psycopg.connect(prepared_postgres_url, autocommit=True) as third,
    ):
        other.execute("LOCK TABLE run IN ACCESS EXCLUSIVE MODE")
        waiting = threading.Thread(target=look)
        waiting.start()
        until = time.monotonic() + LONG_SECONDS
        while third.execute(WAITING).fetchone() == (0,):
            assert time.monotonic() < until
        assert found == []
    waiting.join()
    assert found == [[]]
    with store.read() as tx:
        assert tx.connection.exec_driver_sql("SHOW lock_timeout").scalar_one() == "0"
    store.dispose()


@pytest.mark.parametrize("command", [("status",), ("runs",), ("why", "1"), ("tasks", "latest")])
def test_commands_of_people_end_with_an_error(locked, monkeypatch, capsys, command):
    monkeypatch.setattr(opening, "IMPATIENT_SECONDS", SECONDS)
    assert run_command([*command, "--store", locked]) == 2
    told = capsys.readouterr().err
    assert "another session keeps a lock" in told and "hint: " in told
