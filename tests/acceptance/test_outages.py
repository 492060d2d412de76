"""The database goes away for a while: everybody waits, says so once, and goes on where they were."""

from __future__ import annotations

import time

import pytest
from cluster import LEASE_SECONDS, LONG_SECONDS

AWAY = "waiting for the database: could not reach the database"
BACK = "works again after"


@pytest.fixture
def server(postgres_server, prepared_postgres_url):
    """The server of this worker, which a test may stop: it runs again before the next one."""
    yield postgres_server
    postgres_server.start()


@pytest.fixture
def cluster(make_cluster, server, prepared_postgres_url, tmp_path):
    settings = {"ASKING_FOLDER": str(tmp_path)}
    cluster = make_cluster(prepared_postgres_url, settings, without=("HEADRACE_AGENT__LEASE_SECONDS",))
    cluster.bring("asking.py")
    return cluster


def test_an_outage_costs_nothing_and_is_two_lines(cluster, server, tmp_path):
    standalone = cluster.standalone()
    run_id = cluster.trigger("asking")
    cluster.wait_until(lambda: list(tmp_path.glob("asks * 1")), "the task runs")
    local = cluster.start("run", str(cluster.project / "asking.py"), "--store", cluster.url)
    cluster.wait_until(lambda: len(list(tmp_path.glob("asks * 1"))) == 2, "both runs have begun")
    server.stop()
    for member in (standalone, local):
        cluster.wait_until(lambda member=member: AWAY in member.stderr, f"{member.name} notices")
    server.start()
    for member in (standalone, local):
        cluster.wait_until(lambda member=member: BACK in member.stderr, f"{member.name} goes on")
    (tmp_path / "enough").touch()
    assert cluster.wait_for_end(run_id).state == "success"
    assert local.process.wait(LONG_SECONDS) == 0, local.stderr
    assert {name: [one.state for one in rows] for name, rows in cluster.tries(run_id).items()} == {
        "ask": ["success"],
        "after": ["success"],
    }
    for member in (standalone, local):
        assert (member.stderr.count(AWAY), member.stderr.count(BACK)) == (1, 1), member.stderr
        assert "Traceback" not in member.stderr
    cluster.store.dispose()


def test_an_outage_that_outlasts_leases_costs_no_try(make_cluster, server, prepared_postgres_url, tmp_path):
    """The agent has ended the task by then and runs it anew, because the scheduler gave it time to come back."""
    settings = {"ASKING_FOLDER": str(tmp_path), "HEADRACE_AGENT__RENEW_SECONDS": "0.2"}
    cluster = make_cluster(prepared_postgres_url, settings)
    cluster.bring("asking.py")
    cluster.scheduler()
    agent = cluster.agent()
    run_id = cluster.trigger("asking")
    (mark,) = cluster.wait_until(lambda: list(tmp_path.glob("asks * 1")), "the task runs")
    server.stop()
    cluster.wait_until(lambda: "could not renew its lease" in agent.stderr, "the agent ends the task")
    mark.unlink()
    (tmp_path / "enough").touch()
    since = time.monotonic()
    cluster.wait_until(lambda: time.monotonic() > since + LEASE_SECONDS * 2, "the lease has run out for long")
    server.start()
    assert cluster.wait_for_end(run_id).state == "success"
    tries = cluster.tries(run_id)["ask"]
    assert [(one.try_number, one.state) for one in tries] == [(1, "canceled"), (1, "success")]
    cluster.store.dispose()


def test_who_is_stopped_while_the_database_is_away_leaves(cluster, server, tmp_path):
    standalone = cluster.standalone("--drain-seconds", "1")
    cluster.trigger("asking")
    cluster.wait_until(lambda: list(tmp_path.glob("asks * 1")), "the task runs")
    server.stop()
    cluster.wait_until(lambda: AWAY in standalone.stderr, "it notices")
    assert standalone.terminate() == 0
    assert not cluster.processes()
    assert "Traceback" not in standalone.stderr
    cluster.store.dispose()
