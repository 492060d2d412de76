"""Databases that restart, lose connections or are busy, and networks that fail."""

from __future__ import annotations

import sqlite3
import time
from contextlib import ExitStack, suppress
from typing import Any

import psycopg

from headrace.testing.faults.arena import Arena
from headrace.testing.faults.cluster import LEASE_SECONDS
from headrace.testing.faults.fault import NOBODY, Fault, Interrupted
from headrace.testing.faults.proxy import Proxy
from headrace.testing.postgres import PostgresServer

_HELD_SECONDS = 2.0

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
        _end_others(connection, [])
    return NOBODY


def take_all_connections(arena: Arena) -> Interrupted:
    """Whoever has a connection loses it, and gets no other one for a while."""
    until = time.monotonic() + _HELD_SECONDS
    with ExitStack() as held:
        taken = _take_free(arena.cluster.url, held)
        _end_others(taken[0], [one.info.backend_pid for one in taken])
        while time.monotonic() < until:
            _take_free(arena.cluster.url, held)
            time.sleep(0.01)
    return NOBODY


def _take_free(url: str, held: ExitStack) -> list[_Connection]:
    taken: list[_Connection] = []
    with suppress(psycopg.OperationalError):
        while True:
            taken.append(held.enter_context(psycopg.connect(url, autocommit=True)))
    return taken


def _end_others(connection: _Connection, ours: list[int]) -> None:
    connection.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        " WHERE datname = current_database() AND pid <> pg_backend_pid() AND NOT pid = ANY(%s)",
        [ours],
    )


def freeze_network(arena: Arena) -> Interrupted:
    """What an agent and the database say to each other arrives much later than its lease lasts."""
    proxy = _proxy(arena)
    proxy.freeze()
    time.sleep(2 * LEASE_SECONDS)
    proxy.heal()
    return NOBODY


def cut_network(arena: Arena) -> Interrupted:
    """An agent cannot reach the database for longer than its lease lasts."""
    proxy = _proxy(arena)
    proxy.freeze()
    proxy.cut()
    time.sleep(2 * LEASE_SECONDS)
    proxy.heal()
    return NOBODY


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
    Fault("PostgreSQL is restarted", "everybody waits and goes on", restart_postgres, stores=_POSTGRES),
    Fault("PostgreSQL crashes", "everybody waits and goes on", crash_postgres, stores=_POSTGRES),
    Fault("connections are cut", "what was under way is done again", cut_connections, stores=_POSTGRES),
    Fault("no connection is free", "everybody waits and goes on", take_all_connections, stores=_POSTGRES),
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
