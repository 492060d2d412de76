"""SIGTERM: an agent lets tasks finish for a while, hands the rest back, and does not wait if it is told twice."""

from __future__ import annotations

import os
import signal
import time

import pytest
from cluster import LONG_SECONDS

from headrace.cli.interrupts import ECHO_SECONDS


@pytest.fixture
def cluster(make_cluster, tmp_path):
    settings = {"ASKING_FOLDER": str(tmp_path), "HEADRACE_AGENT__DRAIN_SECONDS": "0.2"}
    cluster = make_cluster(settings=settings)
    cluster.bring("asking.py")
    return cluster


def test_what_does_not_finish_in_time_is_handed_back_and_a_second_signal_is_obeyed_at_once(cluster, tmp_path):
    first = cluster.standalone()
    run_id = cluster.trigger("asking")
    (mark,) = cluster.wait_until(lambda: list(tmp_path.glob("asks * 1")), "the task runs")
    assert first.terminate() == 0
    assert cluster.tasks(run_id)["ask"].state == "scheduled"
    os.remove(mark)
    second = cluster.standalone(HEADRACE_AGENT__DRAIN_SECONDS="600")
    cluster.wait_until(mark.exists, "it runs again")
    assert [(one.try_number, one.state) for one in cluster.tries(run_id)["ask"]] == [(1, "canceled")]
    assert cluster.tasks(run_id)["ask"].try_number == 1
    second.signal(signal.SIGTERM)
    cluster.wait_until(lambda: "once more ends it at once" in second.stderr, "it waits for the task")
    cluster.wait_until(lambda: "stopping" in [one["kind"] for one in cluster.ask("status")["concerns"]], "it says so")
    time.sleep(ECHO_SECONDS)
    assert cluster.tasks(run_id)["ask"].state == "running"
    second.signal(signal.SIGTERM)
    assert second.process.wait(LONG_SECONDS) == 130
    cluster.wait_until(lambda: not cluster.processes(), "everything is gone")


def test_a_signal_that_comes_several_times_at_once_drains(cluster, tmp_path):
    """As from `timeout`, which signals the process and then its whole group."""
    member = cluster.standalone()
    run_id = cluster.trigger("asking")
    cluster.wait_until(lambda: list(tmp_path.glob("asks * 1")), "the task runs")
    for _ in range(20):
        member.signal(signal.SIGTERM)
        time.sleep(0.002)
    assert member.process.wait(LONG_SECONDS) == 0
    assert cluster.tasks(run_id)["ask"].state == "scheduled"
    assert [(one.try_number, one.state) for one in cluster.tries(run_id)["ask"]] == [(1, "canceled")]
