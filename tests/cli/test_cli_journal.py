"""Who tells in its log which runs have started and ended: schedulers, of all of them."""

from __future__ import annotations

import signal

import pytest

BODY = """
@task
def hello():
    pass

hello()
"""


@pytest.fixture
def scheduler_and_agent(headrace):
    """Two running processes, as they are on different machines."""
    headrace.dag(BODY)
    flows = f"flows={headrace.folder / 'flows'}"
    processes = [headrace.start("scheduler", "--projects", flows), headrace.start("agent")]
    yield processes
    for process in processes:
        process.kill()
        process.communicate()


def test_runs_are_told_by_the_scheduler_and_not_by_each_agent(headrace, scheduler_and_agent):
    scheduler, agent = scheduler_and_agent
    headrace.read_until(scheduler, "workflow `flow` appeared")
    assert headrace("trigger", "flow").returncode == 0
    seen = headrace.read_until(scheduler, "run 1 of `flow` ended: success")
    assert "run 1 of `flow` started" in seen
    agent.send_signal(signal.SIGTERM)
    _, told = agent.communicate(timeout=60)
    assert "an agent serves" in told
    assert "run 1" not in told
