"""Airflow's recipe to see a zombie: a task whose heartbeats come too rarely is found within seconds."""

from __future__ import annotations

import time

import pytest

NEW = {
    "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_SEC": "600",
    "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT": "2",
    "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT_DETECTION_INTERVAL": "5",
}
OLD = {
    "AIRFLOW__SCHEDULER__LOCAL_TASK_JOB_HEARTBEAT_SEC": "600",
    "AIRFLOW__SCHEDULER__SCHEDULER_ZOMBIE_TASK_THRESHOLD": "2",
    "AIRFLOW__SCHEDULER__ZOMBIE_DETECTION_INTERVAL": "5",
}
SECONDS = 30.0
"""Two of silence, up to five until somebody looks, and the rest for a busy machine."""


@pytest.mark.parametrize(("kind", "spelling"), [("sqlite", OLD), ("postgres", NEW)])
def test_a_ten_minute_task_is_given_up_within_seconds(make_cluster, request, kind, spelling):
    url = request.getfixturevalue("prepared_postgres_url") if kind == "postgres" else None
    cluster = make_cluster(url, spelling, without=("HEADRACE_AGENT__LEASE_SECONDS",))
    cluster.bring("ten_minutes.py")
    member = cluster.standalone()
    run_id = cluster.trigger("ten_minutes")
    cluster.wait_until(lambda: cluster.tasks(run_id)["sleep"].state == "running", "the task runs")
    began = time.monotonic()
    run = cluster.wait_for_end(run_id)
    assert time.monotonic() - began < SECONDS
    assert run.state == "failed"
    assert [one.state for one in cluster.tries(run_id)["sleep"]] == ["failed"]
    cluster.wait_until(lambda: "(limit 2 s): its task failed" in member.stderr, "the scheduler says why")
    # The process that nobody owns any more is ended, too, and the agent goes on.
    cluster.wait_until(lambda: "lost its lease" in member.stderr, "the agent learns of it")
