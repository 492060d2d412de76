"""The page about Airflow's traps names tests that exist, and figures that the recorded data has."""

from __future__ import annotations

import json
import re

from pages import ROOT

PAGE = (ROOT / "docs/reference/airflow-compatibility.md").read_text()
ROWS = re.findall(r"^\| (\d+)\. .* \| (.+) \|$", PAGE, re.MULTILINE)


def test_every_trap_has_tests_that_exist():
    files = (ROOT / "tests").rglob("test_*.py")
    existing = {name for file in files for name in re.findall(r"^def (test_\w+)", file.read_text(), re.MULTILINE)}
    assert [int(number) for number, _ in ROWS] == list(range(1, 46))
    named = {number: re.findall(r"`(test_\w+)`", tests) for number, tests in ROWS}
    assert [number for number, tests in named.items() if not tests] == []
    assert [test for tests in named.values() for test in tests if test not in existing] == []


def test_figures_are_those_of_the_recorded_data():
    records = json.loads((ROOT / "tests/differential/recorded.json").read_text())
    instances = sum(len(record["tasks"]) for record in records)
    assert f"{len(records)} random DAGs" in PAGE
    assert f"{round(instances, -2):,} task\ninstances" in PAGE
