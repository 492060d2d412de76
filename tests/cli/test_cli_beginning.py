"""Which commands make a database, and what all others say where there is none."""

from __future__ import annotations

import contextlib
import sqlite3

import pytest

from headrace.store import Database
from headrace.store.sql import Sql

NO_BEGINNING = (
    "answer latest ask yes", "assets list", "assets emit orders", "attempts",
    "backfill create daily --from 2026-01-01 --count 1", "backfill list", "clear latest", "connections list",
    "connections get db", "connections delete db", "db check", "delete sales", "disable 1", "download sales",
    "enable 1", "errands latest", "errors", "kill latest", "logs latest load", "mark success latest load",
    "next daily", "pause daily", "pools", "pools delete narrow", "projects", "questions", "rendered latest load",
    "reschedule 1 --skip 1", "retry latest", "runs", "schedules", "secrets --project sales",
    "secrets --project sales --delete key", "secrets rotate", "sessions", "sla-misses",
    "start sales daily --session now", "status", "tasks latest", "trigger daily", "unpause daily", "variables list",
    "variables get day", "variables delete day", "why latest", "workflows",
)  # fmt: skip
BEGINNINGS = (
    "connections add db http://example.com", "connections import connections.json", "db upgrade", "pools set narrow 2",
    "push sales --project flows", "secrets --project sales --set key=value", "variables import variables.json",
    "variables set day monday",
)  # fmt: skip
RELATIONS = Sql(
    """
    [[sqlite: SELECT name FROM sqlite_master]]
    [[postgres: SELECT CAST(relname AS text) FROM pg_class WHERE relnamespace = CAST('public' AS regnamespace)]]
    """
)


def relations(url):
    database = Database(url)
    with database.read() as tx:
        found = {name for (name,) in tx.run(RELATIONS)}
    database.dispose()
    return found


def with_customers(url):
    database = Database(url)
    with database.begin() as tx:
        tx.change(Sql("CREATE TABLE customers (name TEXT)"))
    database.dispose()


@pytest.mark.parametrize("command", NO_BEGINNING)
def test_a_command_that_needs_something_to_be_there_makes_no_database(headrace, command):
    path = headrace.folder / "places" / "typo.db"
    done = headrace(*command.split(), "--store", f"sqlite:///{path}")
    assert (done.returncode, done.out, path.parent.exists()) == (2, "", False), done.err
    assert done.err.splitlines() == [
        f"error: there is no Headrace database at `sqlite:///{path}`: the file does not exist",
        "hint: `headrace db upgrade` creates one there; if there should be one, check `--store` or the `store` setting",
    ]


@pytest.mark.parametrize("command", BEGINNINGS)
def test_a_command_with_which_somebody_begins_makes_the_database(headrace, command):
    headrace.write("daily.dig", "+load:\n  echo>: hello\n")
    for name in ("connections", "variables"):
        (headrace.folder / f"{name}.json").write_text('{"here": "http://example.com"}')
    done = headrace(*command.split())
    assert done.returncode == 0, done.err
    assert headrace("status").returncode == 0


def test_tables_of_another_program_are_told_and_left_alone(headrace, store_url):
    with_customers(store_url)
    for command in ("why latest", "runs", "trigger daily", "db check"):
        done = headrace(*command.split(), "--store", store_url)
        assert done.returncode == 2
        assert done.err.splitlines()[0].endswith("`, but tables of another program: customers")
        assert "`headrace db upgrade` creates the tables of Headrace beside them" in done.err
    for command in ("push sales --project flows", "variables set day monday", f"standalone {headrace.folder}"):
        done = headrace(*command.split(), "--store", store_url)
        assert done.returncode == 2
        assert done.err.splitlines()[0].endswith("` holds tables of another program: customers")
        assert "hint: name an empty database with `--store`" in done.err and "`headrace db upgrade`" in done.err
    assert relations(store_url) == {"customers"}
    assert headrace("db", "upgrade", "--store", store_url).returncode == 0
    assert headrace("runs", "--store", store_url).returncode == 0
    assert relations(store_url) > {"customers", "task"}


def test_a_look_changes_no_byte_of_another_programs_file(headrace):
    path = headrace.folder / "shop.db"
    with contextlib.closing(sqlite3.connect(path)) as shop:
        shop.execute("CREATE TABLE customers (name TEXT)")
    before = path.read_bytes()
    for command in ("runs", "db check", "variables set day monday"):
        assert headrace(*command.split(), "--store", str(path)).returncode == 2
    assert path.read_bytes() == before


def test_an_empty_file_is_no_reason_to_overlook_the_runs_of_headrace_run(headrace):
    assert headrace("run", headrace.dag("@task\ndef hello():\n    pass\n\nhello()")).returncode == 0
    (headrace.home / "headrace.db").touch()
    assert "ended as success" in headrace("why", "latest").out
    assert "headrace.db`: it is empty" in headrace("workflows").err
