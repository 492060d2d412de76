"""What processes have cost is never less than a moment before, whichever of them end meanwhile."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import headrace

# The last line makes it one of ours.
CHURN = """
import os
while True:
    pid = os.fork()
    if pid == 0:
        bytearray(400_000)
        os._exit(0)
    os.waitpid(pid, 0)
# headrace.
"""


@pytest.fixture
def cost(monkeypatch):
    monkeypatch.syspath_prepend(str(Path(headrace.__file__).parents[2]))
    return pytest.importorskip("benchmarks.cost")


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere only children that have ended are counted")
def test_cost_only_grows(cost):
    with subprocess.Popen([sys.executable, "-c", CHURN]) as churn:
        try:
            costs = [cost.cost_so_far().page_faults for _ in range(300)]
        finally:
            churn.kill()
    assert costs == sorted(costs)
    assert costs[-1] > costs[0]


def test_what_the_host_took_is_a_share_of_the_time_that_passed(cost):
    earlier, later = cost.Machine(stolen=100, all=1000), cost.Machine(stolen=150, all=1200)
    assert later.stolen_since(earlier) == 0.25
    assert later.stolen_since(later) == 0.0


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells what was stolen")
def test_the_machine_tells_what_was_stolen(cost):
    machine = cost.machine_so_far()
    assert 0 <= machine.stolen < machine.all
