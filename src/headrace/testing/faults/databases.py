"""Databases that restart, lose connections or are busy, and networks that fail."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from typing import Any

import psycopg

from headrace.testing.faults.arena import Arena
from headrace.testing.faults.cluster import NeverHappened
from headrace.testing.faults.fault import NOBODY, Fault, Interrupted
from headrace.testing.faults.proxy import Proxy
from headrace.testing.faults.sightings import is_given_up
from headrace.testing.postgres import PostgresServer

_HELD_SECONDS = 2.0
_LONGEST_HELD_SECONDS = 20.0
_WAITING = "waiting for the database"
_MANY_TIMES = 10
_REFUSE = """
    CREATE SEQUENCE IF NOT EXISTS harness_refused;
    ALTER SEQUENCE harness_refused RESTART;
    CREATE OR REPLACE FUNCTION harness_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        IF random() < TG_ARGV[0]::float THEN
            PERFORM nextval('harness_refused');
            RAISE EXCEPTION 'the harness calls this off'
                USING ERRCODE = CASE WHEN random() < 0.5 THEN 'serialization_failure' ELSE 'deadlock_detected' END;
        END IF;
        RETURN NULL;
    END $$;
    CREATE TRIGGER harness_at_once AFTER INSERT ON event
        FOR EACH STATEMENT EXECUTE FUNCTION harness_refuse(0.2);
    CREATE CONSTRAINT TRIGGER harness_at_commit AFTER INSERT ON event DEFERRABLE INITIALLY DEFERRED
        FOR EACH ROW EXECUTE FUNCTION harness_refuse(0.05)
"""
_ACCEPT = "DROP TRIGGER harness_at_once ON event; DROP TRIGGER harness_at_commit ON event"

_Connection = psycopg.Connection[tuple[Any, ...]]


def restart_postgres(arena: Arena) -> Interrupted:
    _server(arena).restart()
    return NOBODY


def crash_postgres(arena: Arena) -> Interrupted:
    server = _server(arena)
    server.crash()
    server.start()
    return NOBODY


def cut_connections(arena: Arena) -> Interrupted:
    with psycopg.connect(arena.cluster.url, autocommit=True) as connection:
        if not _end_others(connection, []):
            raise NeverHappened("nobody had a connection that could be cut")
    return NOBODY


def take_all_connections(arena: Arena) -> Interrupted:
    """Whoever has a connection loses it, and gets no other one for a while, until somebody has noticed it."""
    noticed = arena.times_said(_WAITING)
    with ExitStack() as held:
        taken = _take_free(arena.cluster.url, held)
        _end_others(taken[0], [one.info.backend_pid for one in taken])
        began = time.monotonic()
        while time.monotonic() < began + _HELD_SECONDS or arena.times_said(_WAITING) == noticed:
            if time.monotonic() > began + _LONGEST_HELD_SECONDS:
                raise NeverHappened("nobody noticed that there was no connection left")
            _take_free(arena.cluster.url, held)
            time.sleep(0.01)
    return NOBODY


def _take_free(url: str, held: ExitStack) -> list[_Connection]:
    taken: list[_Connection] = []
    with suppress(psycopg.OperationalError):
        while True:
            taken.append(held.enter_context(psycopg.connect(url, autocommit=True)))
    return taken


def _end_others(connection: _Connection, ours: list[int]) -> int:
    ended = connection.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        " WHERE datname = current_database() AND pid <> pg_backend_pid() AND NOT pid = ANY(%s)",
        [ours],
    )
    return ended.rowcount


def refuse_commits(arena: Arena) -> Interrupted:
    """The server calls off transactions, some at once and some as late as at their commit."""
    with psycopg.connect(arena.cluster.url, autocommit=True) as connection:
        connection.execute(_REFUSE)
        try:
            arena.wait_under_load(lambda: _refused(connection) >= _MANY_TIMES, "transactions are called off")
        finally:
            times = _refused(connection)
            connection.execute(_ACCEPT)
    return Interrupted((), 0.0, times=times)


def _refused(connection: _Connection) -> int:
    # What a sequence has counted is not undone with the transaction.
    ((times, is_counted),) = connection.execute("SELECT last_value, is_called FROM harness_refused").fetchall()
    return int(times) if is_counted else 0


def freeze_network(arena: Arena) -> Interrupted:
    """What an agent and the database say to each other arrives only when others have its tasks."""
    return _part(arena, _proxy(arena).freeze)


def cut_network(arena: Arena) -> Interrupted:
    """An agent has lost its connections, and cannot reach the database until others have its tasks."""

    def cut() -> None:
        _proxy(arena).freeze()
        _proxy(arena).cut()

    return _part(arena, cut)


def _part(arena: Arena, how: Callable[[], None]) -> Interrupted:
    agent = arena.wait_for_proxied_work()
    lines = dict(arena.agents_at_work()).get(agent, [])
    at = time.monotonic()
    how()
    try:
        arena.cluster.wait_until(lambda: is_given_up(arena.cluster.store, agent), f"{agent.name} is given up")
    finally:
        _proxy(arena).heal()
    return Interrupted(lines, at)


def write_to_sqlite(arena: Arena) -> Interrupted:
    connection = sqlite3.connect(arena.cluster.url.removeprefix("sqlite:///"), isolation_level=None)
    try:
        connection.execute("PRAGMA busy_timeout = 30000")
        connection.execute("BEGIN IMMEDIATE")
        time.sleep(_HELD_SECONDS)
        connection.execute("ROLLBACK")
    finally:
        connection.close()
    return NOBODY


def _server(arena: Arena) -> PostgresServer:
    assert arena.server is not None
    return arena.server


def _proxy(arena: Arena) -> Proxy:
    assert arena.proxy is not None
    return arena.proxy


_POSTGRES = ("postgres",)

DATABASES = (
    Fault(
        "PostgreSQL is restarted",
        "everybody waits and goes on",
        restart_postgres,
        stores=_POSTGRES,
        pause_seconds=(5.0, 40.0),
    ),
    Fault("PostgreSQL crashes", "everybody waits and goes on", crash_postgres, stores=_POSTGRES),
    Fault("connections are cut", "what was under way is done again", cut_connections, stores=_POSTGRES),
    Fault("no connection is free", "everybody waits and goes on", take_all_connections, stores=_POSTGRES),
    Fault("transactions are called off", "they are made again", refuse_commits, stores=_POSTGRES),
    Fault(
        "the network is frozen",
        "an agent ends its tasks before others get them",
        freeze_network,
        stores=_POSTGRES,
        task_seconds=3.0,
    ),
    Fault(
        "the network is cut",
        "an agent ends its tasks before others get them",
        cut_network,
        stores=_POSTGRES,
        task_seconds=3.0,
    ),
    Fault("somebody else writes", "everybody waits and goes on", write_to_sqlite, stores=("sqlite",)),
)
