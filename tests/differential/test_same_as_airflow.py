"""Random DAGs end here as they ended in Airflow: every task instance, and the run."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from headrace.definition.workflow import TRIGGER_RULES
from headrace.testing.engine import Engine
from headrace.testing.run import Run

HERE = Path(__file__).parent
RECORDED: list[dict[str, Any]] = json.loads((HERE / "recorded.json").read_text())
THEMES = sorted({record["id"].rpartition("_")[0] for record in RECORDED})

DAG_FILE = f"""
import json
import sys
from pathlib import Path

sys.path.insert(0, {str(HERE)!r})
from building import build

for description in json.loads(Path(__file__).with_name("descriptions.json").read_text()):
    globals()[description["id"]] = build(description)
"""


@pytest.fixture
def engine(tmp_path):
    # So many slots that all tasks which may run at a time do: the steps in which the runs were recorded.
    engine = Engine(tmp_path, slots=1000)
    yield engine
    engine.close()


@pytest.mark.parametrize("theme", THEMES)
def test_random_dags_end_as_in_airflow(engine, theme):
    records = [record for record in RECORDED if record["id"].startswith(theme + "_")]
    engine.write("descriptions.json", json.dumps(records))
    runs = engine.start_dags(DAG_FILE)
    engine.settle()
    differences = [difference for record in records for difference in compare(record, runs[record["id"]])]
    assert differences == []


def compare(record: dict[str, Any], run: Run) -> list[str]:
    ours = {**instances(run), "the run": run.state}
    theirs = {**record["tasks"], "the run": record["run"]}
    return [
        f"{record['id']}: {name} is {ours.get(name)}, in Airflow {theirs.get(name)}"
        for name in sorted({*ours, *theirs})
        if ours.get(name) != theirs.get(name)
    ]


def instances(run: Run) -> dict[str, str]:
    """The states by the names that Airflow knows: a mapped task that was expanded is there as its instances only."""
    states = run.states()
    expanded = {name.rpartition("[")[0] for name in states if name.endswith("]")}
    return {name: state for name, state in states.items() if name not in expanded}


def test_records_cover_what_dags_are_made_of():
    text = json.dumps(RECORDED)
    states = Counter(state for record in RECORDED for state in record["tasks"].values())
    assert len(RECORDED) >= 400
    assert min(states[state] for state in ("success", "failed", "skipped", "upstream_failed")) > 100
    for word in ("choose", "otherwise", "go_on", "gives", "map", "setup", "teardown_of", "fails_run", "flaky", "empty"):
        assert text.count(f'"{word}"') > 20, word
    for rule in TRIGGER_RULES:
        assert text.count(f'"{rule}"') > 20 or rule == "all_done_setup_success"
