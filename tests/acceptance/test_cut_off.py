"""An agent that is cut off from the database ends what it runs before anybody else is given it, and comes back."""

from __future__ import annotations

import pytest
from cluster import LEASE_SECONDS, kill
from marathon_record import Record

from headrace.processes import is_alive
from headrace.testing.faults.proxy import Proxy

SLOW = "step_040"


@pytest.fixture
def cluster(make_cluster, postgres_url, tmp_path):
    record = Record(tmp_path)
    settings = {**record.settings, "MARATHON_SECONDS": "0.01", "MARATHON_SLOW_SECONDS": "60 0.01"}
    cluster = make_cluster(postgres_url, settings)
    cluster.record = record
    cluster.bring("marathon.py")
    return cluster


def test_an_agent_that_is_cut_off_ends_its_tasks_in_time(cluster, postgres_url):
    """Its connections stay open and silent, so that each of its threads waits for an answer which never comes."""
    record = cluster.record
    with Proxy(postgres_url) as proxy:
        cluster.scheduler()
        agent = cluster.agent("--name", "far", HEADRACE_STORE=proxy.url)
        cluster.wait_for_members(agents=1, schedulers=1)
        run_id = cluster.trigger("marathon")
        cluster.wait_until(lambda: record.started_at(SLOW, 1), "the slow task runs on the agent")
        (pid,) = {line.pid for line in record.under_way() if line.task == SLOW}
        cluster.agent("--name", "near")
        cluster.wait_for_members(agents=2)
        proxy.freeze()
        cluster.wait_until(lambda: not is_alive(pid), "the agent has ended the task by itself")
        assert not record.started_at(SLOW, 2), "it was too late"
        cluster.wait_until(lambda: record.started_at(SLOW, 2), "the other agent runs the task")
        assert f"agent `far` could not renew its lease for 1.5 s (limit {LEASE_SECONDS:g} s)" in agent.stderr
        record.check(cluster, run_id)
        rows = cluster.tries(run_id)[SLOW]
        assert [(one.try_number, one.state) for one in rows] == [(1, "failed"), (2, "success")]
        proxy.heal()
        cluster.wait_until(lambda: "lost its lease" in agent.stderr, "it learns that it was given up")
        cluster.wait_for_members(agents=2)
        assert agent.terminate() == 0
        assert "Traceback" not in agent.stderr


def test_an_agent_that_comes_back_in_time_hands_its_tasks_back(cluster, postgres_url):
    """Nobody has taken them from it, so that they have lost no try."""
    record = cluster.record
    with Proxy(postgres_url) as proxy:
        scheduler = cluster.scheduler()
        agent = cluster.agent("--name", "far", HEADRACE_STORE=proxy.url)
        cluster.wait_for_members(agents=1, schedulers=1)
        run_id = cluster.trigger("marathon")
        cluster.wait_until(lambda: record.started_at(SLOW, 1), "the slow task runs on the agent")
        (pid,) = {line.pid for line in record.under_way() if line.task == SLOW}
        (record.folder / "hurry").touch()
        kill(scheduler.pid)
        proxy.freeze()
        cluster.wait_until(lambda: not is_alive(pid), "the agent has ended the task by itself")
        proxy.heal()
        record.check(cluster, run_id)
        rows = cluster.tries(run_id)[SLOW]
        assert [(one.try_number, one.state) for one in rows] == [(1, "canceled"), (1, "success")]
        assert agent.terminate() == 0
