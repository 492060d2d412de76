"""A database that lacks something, or is busy for too long: said in one sentence, and nothing is half done."""

from __future__ import annotations

import sqlite3

import psycopg
import pytest

from headrace.errors import StoreError, StoreUnreachableError
from headrace.store import Store
from headrace.store.database import _connect_args
from headrace.store.sql import Sql

MANY = Sql(
    """
    INSERT INTO pool (name, slots, includes_deferred)
    [[sqlite: WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000)
              SELECT 'pool ' || i, 1, FALSE FROM n]]
    [[postgres: SELECT 'pool ' || i, 1, FALSE FROM generate_series(1, 20000) AS n(i)]]
    """
)
FAIL = Sql(
    "[[postgres: DO $$ BEGIN RAISE EXCEPTION 'no space left' USING ERRCODE = '53100'; END $$]][[sqlite: SELECT 1]]"
)
COUNT = Sql("SELECT count(*) FROM pool")


def count(store):
    with store.read() as tx:
        return tx.run(COUNT)[0][0]


def test_a_full_disk_is_named_and_nothing_is_half_done(prepared_url):
    store = Store(prepared_url)

    def fill(tx):
        tx.change(MANY)
        tx.change(FAIL)

    if not store.is_shared:
        with store.read() as tx:
            ((pages,),) = tx.run(Sql("PRAGMA page_count"))
            tx.run(Sql(f"PRAGMA max_page_count = {pages + 5}"))
    with pytest.raises(StoreUnreachableError, match=r"cannot write to .*: its disk is full") as caught:
        store.transact(fill)
    assert "make room" in caught.value.hint
    assert count(store) == 1
    store.dispose()
    again = Store(prepared_url)
    again.transact(lambda tx: tx.change(MANY))
    assert count(again) == 20_001
    if not again.is_shared:
        with again.read() as tx:
            assert tx.run(Sql("PRAGMA integrity_check")) == [("ok",)]
    again.dispose()


def test_too_many_connections_are_waited_for(postgres_server, postgres_url):
    """A role that may have one connection stands for a server that has no more."""
    Store(postgres_url).dispose()
    role = f"narrow_{postgres_url.rpartition('/')[2]}"
    with psycopg.connect(postgres_url, autocommit=True) as admin:
        admin.execute(f"CREATE ROLE {role} LOGIN CONNECTION LIMIT 1")
        admin.execute(f"GRANT ALL ON ALL TABLES IN SCHEMA public TO {role}")
        own = postgres_url.replace("postgres@", f"{role}@")
        taken = psycopg.connect(own)
        with pytest.raises(StoreUnreachableError, match="too many connections"):
            Store(own)
        taken.close()
        Store(own).dispose()
        admin.execute(f"DROP OWNED BY {role}")
        admin.execute(f"DROP ROLE {role}")


def test_a_second_writer_is_waited_for_with_a_bound(tmp_path, monkeypatch):
    monkeypatch.setattr("headrace.store.database.BUSY_SECONDS", 1)
    store = Store(f"sqlite:///{tmp_path}/headrace.db")
    other = sqlite3.connect(tmp_path / "headrace.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreError, match="another process kept the write lock for 1 s"):
        store.transact(lambda tx: tx.change(MANY))
    assert count(store) == 1, "reading goes on"
    other.execute("ROLLBACK")
    other.close()
    store.transact(lambda tx: tx.change(MANY))
    store.dispose()


def test_a_server_that_is_silent_is_given_up_unless_the_url_says_otherwise():
    usual = _connect_args("postgresql+psycopg://host/name")
    assert usual["tcp_user_timeout"] == 10_000 and usual["keepalives_idle"] == 5
    assert "tcp_user_timeout" not in _connect_args("postgresql+psycopg://host/name?tcp_user_timeout=60000")
