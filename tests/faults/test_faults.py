"""The short form of the fault harness: many faults in one cluster, and nothing is lost, doubled or stuck."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.testing.faults.__main__ import FAULTS, STORES, bring_about
from headrace.testing.faults.arena import open_arena
from headrace.testing.faults.bursts import MANY, burst
from headrace.testing.faults.fault import suffer

ALL = (*FAULTS, burst(MANY))
PAGE = Path(__file__).parents[2] / "docs" / "operations" / "fault-harness.md"
HEADINGS = {"| fault | promise |", "| --- | --- |"}
SHORT = {
    "postgres": (
        "kill -9 of an agent",
        "kill -9 of a scheduler",
        "kill -9 of a triggerer",
        "PostgreSQL crashes",
        "connections are cut",
        "transactions are called off",
        "a new revision is deployed",
        "results are told twice",
        "a host's clock is 5 minutes off",
    ),
    "sqlite": ("kill -9 of an agent", "somebody else writes", "the schema is upgraded"),
}
"""Others are shown by tests of their own, such as `test_kill_nine.py`."""


@pytest.mark.parametrize("store", STORES)
def test_nothing_is_lost_whatever_happens(store, request):
    faults = [fault for fault in FAULTS if fault.name in SHORT[store]]
    assert len(faults) == len(SHORT[store])
    environment = {name: value for fault in faults for name, value in fault.environment.items()}
    server = request.getfixturevalue("postgres_server") if store == "postgres" else None
    with open_arena(store, environment=environment, ticks=3, server=server) as arena:
        outcome = suffer(arena, faults, range(1))
        assert outcome.failures == [], arena.cluster.stderr()
        assert outcome.runs > 2 * len(faults) and outcome.recoveries
        assert any(one.offered is not None for one in outcome.recoveries)


@pytest.mark.long
@pytest.mark.parametrize(
    ("fault", "store"), [pytest.param(one, store, id=f"{one.name}, {store}") for one in ALL for store in one.stores]
)
def test_a_fault(fault, store):
    if not fault.is_possible:
        pytest.skip("this user cannot bring it about")
    outcome = bring_about(fault, store)
    assert outcome.failures == []


def test_every_fault_is_documented():
    rows = {f"| {fault.name} | {fault.promise} |" for fault in ALL}
    assert rows == {line for line in PAGE.read_text().splitlines() if line.startswith("| ")} - HEADINGS
