"""An agent that is cut off from the database ends what it runs before anybody else is given it, and comes back."""

from __future__ import annotations

import pytest

from headrace.processes import is_alive
from headrace.testing.faults.proxy import Proxy


@pytest.fixture
def cluster(make_cluster, prepared_postgres_url, tmp_path):
    cluster = make_cluster(prepared_postgres_url, {"ASKING_FOLDER": str(tmp_path)})
    cluster.bring("asking.py")
    return cluster


def test_an_agent_that_is_cut_off_ends_its_tasks_in_time(cluster, prepared_postgres_url, tmp_path):
    """Its connections stay open and silent, so that each of its threads waits for an answer which never comes."""
    with Proxy(prepared_postgres_url) as proxy:
        cluster.scheduler()
        agent = cluster.agent("--name", "far", HEADRACE_STORE=proxy.url)
        run_id = cluster.trigger("asking")
        (mark,) = cluster.wait_until(lambda: list(tmp_path.glob("asks * 1")), "the task runs on the agent")
        pid = int(mark.read_text())
        cluster.agent("--name", "near")
        cluster.wait_for_members(agents=2)
        proxy.freeze()
        cluster.wait_until(lambda: not is_alive(pid), "the agent has ended the task by itself")
        assert not list(tmp_path.glob("asks * 2")), "it was too late"
        (tmp_path / "enough").touch()
        assert cluster.wait_for_end(run_id).state == "success"
        rows = cluster.tries(run_id)["ask"]
        assert [(one.try_number, one.state) for one in rows] == [(1, "failed"), (2, "success")]
        assert "agent `far` could not renew its lease for" in agent.stderr
        proxy.heal()
        cluster.wait_until(lambda: "lost its lease" in agent.stderr, "it learns that it was given up")
        cluster.wait_for_members(agents=2)
        assert agent.terminate() == 0
        assert "Traceback" not in agent.stderr
