"""The page about Digdag names tests that exist, states as they are, and figures that the recorded data has."""

from __future__ import annotations

import json
import re
from pathlib import Path

from headrace.actions.digdag_states import DigdagState, digdag_state
from headrace.state import State

TESTS = Path(__file__).parents[1]
PAGE = TESTS.parent / "docs" / "reference" / "digdag-compatibility.md"


def test_every_test_that_is_named_exists():
    named = set(re.findall(r"`(test_\w+)`", PAGE.read_text()))
    defined = {
        name for path in TESTS.rglob("test_*.py") for name in re.findall(r"^def (test_\w+)", path.read_text(), re.M)
    }
    assert len(named) > 40
    assert named - defined == set()


def test_the_table_of_states_is_complete():
    rows = re.findall(r"^\| ([A-Z_]+) \| (\d) \| (.+) \|$", PAGE.read_text(), re.M)
    assert [(name, int(number)) for name, number, _ in rows] == [(one.name, one.value) for one in DigdagState]
    here = {name: set(re.findall(r"`(\w+)`", text)) for name, _, text in rows}
    for state in State:
        assert state in here[digdag_state(state).name]
        assert state in here[digdag_state(state, failed_below=True).name]


def test_figures_are_those_of_the_recorded_data():
    records = json.loads((TESTS / "differential" / "recorded_digdag.json").read_text())
    tasks = sum(len(record.get("tasks", ())) for record in records)
    assert f"{len(records)} workflows" in PAGE.read_text()
    assert f"{round(tasks, -2):,} tasks" in PAGE.read_text()
