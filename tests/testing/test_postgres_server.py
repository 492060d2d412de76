from __future__ import annotations

import os
import select
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest

from headrace.testing import memory_folders, postgres
from headrace.testing.postgres import PostgresServer


@pytest.fixture
def own_server():
    with PostgresServer() as server:
        yield server


def query(url, statement):
    with psycopg.connect(url, autocommit=True) as connection:
        cursor = connection.execute(statement)
        return cursor.fetchall() if cursor.description else None


def test_new_databases_are_separate_and_empty(postgres_server):
    one, other = postgres_server.new_database(), postgres_server.new_database()
    query(one, "CREATE TABLE kept (number int)")
    assert query(other, "SELECT to_regclass('kept')") == [(None,)]


def test_new_database_copies_its_template(postgres_server):
    template = postgres_server.new_database()
    query(template, "CREATE TABLE kept AS SELECT 7 AS number")
    assert query(postgres_server.new_database(template), "SELECT number FROM kept") == [(7,)]


def test_database_is_in_utf8_and_utc(postgres_url):
    assert query(postgres_url, "SHOW server_encoding") == [("UTF8",)]
    assert query(postgres_url, "SHOW timezone") == [("UTC",)]


def test_fixture_gives_both_kinds_of_store(store_url):
    assert store_url.startswith(("sqlite:///", "postgresql://postgres@127.0.0.1:"))


@pytest.mark.parametrize("how", ["stop", "crash", "kill"])
def test_committed_rows_survive(own_server, how):
    url = own_server.new_database()
    query(url, "CREATE TABLE kept AS SELECT 7 AS number")
    getattr(own_server, how)()
    assert own_server.pid is None
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(url)
    own_server.start()
    assert query(url, "SELECT number FROM kept") == [(7,)]


def test_durable_server_waits_for_the_disk():
    with PostgresServer(is_durable=True, settings={"work_mem": "8MB"}) as server:
        assert query(server.url, "SHOW fsync") == [("on",)]
        assert query(server.url, "SHOW work_mem") == [("8MB",)]


def test_closed_server_leaves_nothing_behind():
    with PostgresServer() as server:
        folders = (server._folder, Path(query(server.url, "SHOW data_directory")[0][0]).parent)
        assert all(folder.exists() for folder in folders)
    assert not any(folder.exists() for folder in folders)


def test_data_are_on_the_disk_if_there_is_too_little_memory(monkeypatch):
    monkeypatch.setattr(memory_folders, "_NEEDED_BYTES", 1 << 60)
    with PostgresServer() as server:
        assert Path(query(server.url, "SHOW data_directory")[0][0]).parent == server._folder


def test_folders_in_memory_of_killed_processes_are_deleted(tmp_path, monkeypatch):
    monkeypatch.setattr(memory_folders, "_NEEDED_BYTES", 0)
    monkeypatch.setattr(memory_folders, "_MEMORY", tmp_path)
    mine = memory_folders.memory_folder()
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    left = mine.with_name(mine.name.replace(f"-{os.getpid()}-", f"-{ended.pid}-"))
    (left / "data").mkdir(parents=True)
    (tmp_path / "somebody-else-1-x").mkdir()
    other = memory_folders.memory_folder()
    assert {one.name for one in tmp_path.iterdir()} == {mine.name, other.name, "somebody-else-1-x"}


def test_busy_port_is_exchanged_for_a_free_one(postgres_server):
    server = PostgresServer()
    server.port = postgres_server.port
    # The other server would answer for this one, so the check is made on the log that a failed start leaves.
    server._learn_from("could not bind IPv4 address: Address already in use")
    assert server.port != postgres_server.port


def test_binaries_that_its_user_cannot_reach_are_copied(tmp_path, monkeypatch):
    if os.geteuid() != 0:
        pytest.skip("only root runs the server as another user")
    monkeypatch.setattr(postgres, "_is_reachable", lambda path, user: False)
    with PostgresServer() as server:
        assert query(server.url, "SELECT 1") == [(1,)]
        assert server._install.is_relative_to(server._folder)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="uses the kernel's parent-death signal")
def test_server_dies_with_its_killed_parent():
    code = (
        "from headrace.testing.postgres import PostgresServer\n"
        "server = PostgresServer(); server.start(); print(server.pid, server._folder, flush=True); input()"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as parent:
        pid, folder = parent.stdout.readline().decode().split()
        watch = os.pidfd_open(int(pid))
        parent.send_signal(signal.SIGKILL)
        parent.wait()
    try:
        # Readable means ended; a server that stays alive makes this wait run out.
        ready, _, _ = select.select([watch], [], [], 10)
        assert ready
    finally:
        os.close(watch)
        shutil.rmtree(folder)
