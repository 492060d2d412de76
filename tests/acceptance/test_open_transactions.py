"""Nobody keeps a transaction open, and thereby locks, while user code runs: told by that very code, on PostgreSQL."""

from __future__ import annotations

import json

import psycopg
import pytest


@pytest.fixture
def cluster(make_cluster, prepared_postgres_url, tmp_path):
    settings = {"WATCHED_STORE": prepared_postgres_url, "WATCHED_FOLDER": str(tmp_path)}
    cluster = make_cluster(prepared_postgres_url, settings, without=("HEADRACE_AGENT__LEASE_SECONDS",))
    cluster.bring("watching.py")
    return cluster


def seen(folder) -> dict[str, list[list[str]]]:
    """The transactions that stayed open, for each time that code of this place ran."""
    return {path.stem: [json.loads(line) for line in path.read_text().splitlines()] for path in folder.glob("*.jsonl")}


def test_files_tasks_and_callbacks_run_without_an_open_transaction(cluster, prepared_postgres_url, tmp_path):
    cluster.standalone()
    assert cluster.wait_for_end(cluster.trigger("watching")).state == "success"
    cluster.wait_until(lambda: seen(tmp_path).get("callback"), "the callback was called")
    assert {place: set(map(len, told)) for place, told in seen(tmp_path).items()} == {
        "file": {0},
        "task": {0},
        "callback": {0},
    }
    with psycopg.connect(prepared_postgres_url) as connection:
        connection.execute("SELECT 'somebody who waits' FROM project")
        assert cluster.wait_for_end(cluster.trigger("watching")).state == "success"
    assert "somebody who waits" in seen(tmp_path)["task"][-1][0], "it would have been noticed"
