"""What an agent that died held waits for no scheduler where another agent starts."""

from __future__ import annotations

import os
import subprocess
from concurrent.futures import ThreadPoolExecutor

import pytest
from agent_place import LONG

from headrace import processes
from headrace.definition import Retry
from headrace.store import RunGraph, claim_tasks, give_up, list_runs, register


@pytest.fixture
def dead_pid():
    process = subprocess.Popen(["true"])
    process.wait()
    return process.pid


def hold(place, pid, where=None, limit=100):
    """An agent takes tasks that are ready; it renews its lease no more."""

    def work(tx):
        agent_id = register(
            tx, kind="agent", name=f"of process {pid}", place=where or processes.place(), pid=pid, slots=8,
            queues=("default",), now=place.now, lease_micros=10**12,
        )  # fmt: skip
        graph = RunGraph(tx, place.now)
        claim_tasks(tx, graph, agent_id, "default", limit)
        graph.flush_events()
        return agent_id

    return place.store.transact(work)


def test_tasks_of_an_agent_that_died_here_are_free_as_soon_as_another_one_starts(place, dead_pid, caplog):
    place.start_run("a", "b", retry=Retry(limit=1))
    hold(place, dead_pid)
    place.seconds = dict.fromkeys("ab", LONG)
    agent = place.agent()
    assert place.tries() == {key: [(1, "failed")] for key in "ab"}
    agent.step(0.0)
    assert len(place.executors[0].running()) == 2
    gone = f"agent `of process {dead_pid}` is gone: each of its 2 tasks is tried again or fails by its own settings"
    assert gone in caplog.messages


def test_without_retries_the_run_ends_with_the_start_of_the_next_agent(place, dead_pid):
    place.start_run("a")
    hold(place, dead_pid)
    place.agent()
    assert place.tasks("failed") == ["a"]
    with place.store.read() as tx:
        assert [run.state for run in list_runs(tx)] == ["failed"]


def test_what_somebody_gave_up_and_did_not_rescue_is_rescued_as_well(place, dead_pid):
    place.start_run("a")
    agent_id = hold(place, dead_pid, "elsewhere")
    place.store.transact(lambda tx: give_up(tx, agent_id, place.now))
    place.agent()
    assert place.tasks("failed") == ["a"]


def test_agents_that_live_and_those_of_other_machines_keep_their_tasks(place, dead_pid):
    place.start_run("a", "b")
    hold(place, dead_pid, "elsewhere", limit=1)
    hold(place, os.getpid())
    place.agent()
    assert place.tasks("running") == ["a", "b"]


def test_any_number_of_agents_may_start_at_once(place, dead_pid):
    keys = [f"t{number}" for number in range(20)]
    place.start_run(*keys, retry=Retry(limit=3))
    hold(place, dead_pid)

    def start(name):
        place.agent(name)
        place.store.close()

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(start, "wxyz"))
    assert place.tries() == {key: [(1, "failed")] for key in keys}, "each lost one try"
    assert len(place.tasks("scheduled")) == 20
