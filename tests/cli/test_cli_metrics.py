"""Real processes that are watched."""

from __future__ import annotations

import re
import socket
from urllib.request import urlopen

import pytest
from prometheus_client.parser import text_string_to_metric_families


@pytest.fixture
def standalone(headrace):
    """A running `headrace standalone` and where its metrics are."""
    headrace.dag("@task\ndef hello():\n    print('good morning')\n\nhello()")
    process = headrace.start("standalone", str(headrace.folder / "flows"), "--metrics-port", "0")
    seen = process.stderr.readline()
    yield re.search(r"metrics are at (http://127\.0\.0\.1:\d+/metrics)", seen)[1]
    process.kill()
    process.communicate()


def numbers(url):
    with urlopen(url, timeout=10) as answer:
        text = answer.read().decode()
    return {
        (sample.name.removeprefix("headrace_"), *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_a_run_is_seen_from_the_file_to_its_end(headrace, standalone):
    for _ in range(100):
        if numbers(standalone).get(("tick_done_total", "project sync")):
            break
    run_id = str(headrace.json("trigger", "flow")[0]["run_id"])
    assert "good morning" in headrace("logs", run_id, "hello", "--follow").out
    for _ in range(100):
        found = numbers(standalone)
        if found.get(("runs_ended_total", "success")):
            break
    assert found["runs_ended_total", "success"] == 1
    assert found["tries_ended_total", "success"] == 1
    assert found["task_start_lag_seconds_count", "default"] == 1
    assert found["files_loaded_total", "ok"] == 1
    assert (found["zygotes",], found["zygotes_started_total",]) == (1, 1)
    assert found["forks_total",] >= 1
    assert found["processes_alive", "agent"] == 1
    assert found["tick_seconds_count", "run starter"] > 0
    assert found["database_commits_total",] > 0
    described, code = headrace.json("status", "--check")
    assert (described["healthy"], code) == (True, 0)
    assert {(one["kind"], one["alive"]) for one in described["processes"]} == {("agent", True), ("scheduler", True)}


def test_a_port_that_is_taken_is_one_sentence(headrace):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        done = headrace("agent", "--metrics-port", str(taken.getsockname()[1]))
    assert done.returncode == 2
    assert done.err.startswith("error: could not serve metrics on port")
    assert "hint: give each process on a machine a port of its own" in done.err
    assert "Traceback" not in done.err


def test_an_installation_without_anybody_is_not_healthy(headrace):
    done = headrace("status", "--check")
    assert done.returncode == 1
    assert done.out.splitlines()[0].endswith(": not healthy")
    assert "  no scheduler is alive: no run starts by itself and no retry" in done.out.splitlines()
    assert "    hint: start one with `headrace agent`" in done.out.splitlines()
    assert headrace("status").returncode == 0, "who only looks is not told by an exit code"
