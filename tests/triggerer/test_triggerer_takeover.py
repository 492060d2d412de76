"""Triggerers as processes: one is killed without a word, and another goes on with what it ran."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from waiting_tasks import Waiting

from headrace.store import live_agents


class Servers:
    """`headrace triggerer` as often as a test wants it."""

    def __init__(self, url: str, folder: Path) -> None:
        self._environment = {
            **os.environ,
            "HEADRACE_HOME": str(folder),
            "HEADRACE_STORE": url,
            "HEADRACE_LOGS_DIR": str(folder / "logs"),
            "HEADRACE_AGENT__LEASE_SECONDS": "2",
            "HEADRACE_SCHEDULER__POLL_SECONDS": "0.3",
        }
        self.processes: list[subprocess.Popen[bytes]] = []

    def start(self, name: str) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            [sys.executable, "-m", "headrace.cli", "triggerer", "--name", name],
            env=self._environment,
            stderr=subprocess.DEVNULL,
        )
        self.processes.append(process)
        return process

    def close(self) -> None:
        for process in self.processes:
            process.terminate()
        for process in self.processes:
            process.wait(60)


@pytest.fixture
def servers(waiting_anywhere, prepared_url, tmp_path):
    servers = Servers(prepared_url, tmp_path)
    yield servers
    servers.close()


def until(is_so, seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < end, f"not so after {seconds} s"
        time.sleep(0.05)


def names(waiting: Waiting) -> set[str]:
    with waiting.store.read() as tx:
        return {row.name for row in live_agents(tx, waiting.now) if row.kind == "triggerer"}


def test_triggers_of_a_killed_triggerer_go_on_elsewhere(waiting_anywhere, servers, tmp_path):
    waiting = waiting_anywhere
    flag = tmp_path / "flag"
    first = servers.start("first")
    until(lambda: names(waiting) == {"first"})
    waiting.start(a={"do": "wait"}, b={"do": "await_file", "file": str(flag)})
    until(lambda: "begins" in waiting.log("a") and "begins" in waiting.log("b"))
    servers.start("second")
    until(lambda: "second" in names(waiting))
    os.kill(first.pid, signal.SIGKILL)
    until(lambda: waiting.log("a").count("begins") == 2 and waiting.log("b").count("begins") == 2)
    flag.touch()
    until(lambda: waiting.states() == {"a": "deferred", "b": "scheduled"})
    assert waiting.resume("b").event == "there"
