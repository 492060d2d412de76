"""How the benchmark compares two forms of the same work."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import headrace


@pytest.fixture
def comparing(monkeypatch):
    monkeypatch.syspath_prepend(str(Path(headrace.__file__).parents[2]))
    return pytest.importorskip("benchmarks.comparing")


def test_forms_take_turns_in_another_order_each_round_and_the_same_one_each_time(comparing):
    def measured():
        order = []
        measures = {name: lambda name=name: (order.append(name), {"wall_seconds": len(order)})[1] for name in "abc"}
        return order, comparing.measure_in_turns(measures, rounds=8)

    order, found = measured()
    rounds = ["".join(order[start : start + 3]) for start in range(0, len(order), 3)]
    assert all(sorted(one) == ["a", "b", "c"] for one in rounds)
    assert len(set(rounds)) > 3
    before = {order[place - 1] for place, name in enumerate(order) if place and name == "a"}
    assert before == {"a", "b", "c"}, "none has always the same one before it"
    for name in "abc":
        assert [order[one["wall_seconds"] - 1] for one in found[name]] == [name] * 8
    assert measured()[0] == order


def test_a_ratio_is_the_middle_of_those_within_the_rounds(comparing):
    def cost(*walls):
        return [{"wall_seconds": wall, "cpu_seconds": 2.0} for wall in walls]

    # The machine was ten times slower in the last round, for both of them.
    figures = comparing.ratios(cost(2.0, 3.0, 20.0), cost(1.0, 2.0, 10.0))
    assert (figures["ratio_of_wall"], figures["ratios_of_wall"]) == (2.0, [2.0, 1.5, 2.0])
    assert figures["ratio_of_cpu"] == 1.0


BUSY = """
from headrace import DAG, task

with DAG("busy"):
    @task
    def count():
        for number in range(500_000):
            pass
    count()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells what a running process's children have cost")
def test_what_tries_cost_is_known_before_their_warm_parent_ends(comparing, tmp_path):
    bench = comparing.Bench(f"sqlite:///{tmp_path}/bench.db", tmp_path, slots=2)
    try:
        workflow = bench.save(BUSY)
        assert bench.measure(workflow)["cpu_seconds"] > 0.02
        assert bench.measure(workflow)["page_faults"] > 100
    finally:
        bench.close()
