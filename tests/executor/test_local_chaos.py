"""Processes are killed at random, by a fixed seed; the promises hold all the same."""

from __future__ import annotations

import os
import random
import signal

import psutil
import pytest
from toy_project import wait_gone

MIXED = """
    import os, signal, subprocess

    def quick(request, channel): return os.getpid()
    def talker(request, channel): print("x" * 10_000)
    def broken(request, channel): raise ValueError("no")
    def parent(request, channel): subprocess.Popen(["sleep", "1000"])
    def slow(request, channel): subprocess.run(["sleep", "1000"])
    def dies(request, channel): os.kill(os.getpid(), signal.SIGKILL)
"""
OPERATORS = ("quick", "quick", "quick", "talker", "broken", "parent", "slow", "dies")


def offspring() -> list[psutil.Process]:
    """The executor's processes; the test process may have other children, such as a database server."""
    family: list[psutil.Process] = []
    for child in psutil.Process().children():
        try:
            if "headrace.runner.start_zygote" in child.cmdline():
                family += [child, *child.children(recursive=True)]
        except psutil.Error:
            continue
    return family


@pytest.mark.parametrize("seed", range(3))
def test_every_request_gets_exactly_one_result_while_processes_are_killed(local, project, seed):
    dice = random.Random(seed)
    project.write(MIXED)
    executor = local(slots=4, tries_per_process=3)
    open_files = len(os.listdir("/proc/self/fd"))
    wanted, reported = 120, []
    submitted = []
    while len(reported) < wanted:
        count = min(dice.randint(0, 4), wanted - len(submitted))
        requests = [
            project.request(
                dice.choice(OPERATORS), isolation=dice.choice(["process", "reuse"]), kill_grace_seconds=0.01
            )
            for _ in range(count)
        ]
        submitted += requests
        executor.submit(requests)
        reported += [result.task_id for result in executor.poll(0.001)]
        if dice.random() < 0.05:
            for process in dice.sample(family := offspring(), min(1, len(family))):
                try:
                    process.send_signal(signal.SIGKILL)
                except psutil.NoSuchProcess:
                    continue
        if executor.running() and dice.random() < 0.1:
            executor.cancel(*dice.choice(executor.running()))
    assert sorted(reported) == [request.task_id for request in submitted]
    assert (executor.poll(0), executor.running()) == ([], [])
    family = [process.pid for process in offspring()]
    executor.close(0)
    wait_gone(*family)
    assert len(os.listdir("/proc/self/fd")) <= open_files
