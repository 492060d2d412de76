"""Random DAGs end here as they ended in Airflow: every task instance, and the run."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from headrace.definition.workflow import TRIGGER_RULES
from headrace.store import set_pool
from headrace.store.pools import UNLIMITED
from headrace.testing.engine import Engine
from headrace.testing.run import Run

HERE = Path(__file__).parent
RECORDED: list[dict[str, Any]] = json.loads((HERE / "recorded.json").read_text())
THEMES = sorted({record["id"].rpartition("_")[0] for record in RECORDED})

EARLY = "Airflow gives a mapped task up if its rule holds before the result to map over is there; here it waits"
INDEX = "in a mapped group, a branch or a short circuit decides about its own index; in Airflow it has no effect there"
CHANCE = "Airflow asks several things about a task at the same time, and the last one that it happens to ask wins"
EMPTY = "in Airflow, what follows an empty group that follows no task waits for the last tasks around the group"
ON_PURPOSE = {
    "mapped_groups_133": EARLY,
    "everything_103": EMPTY,
    "mapped_groups_229": INDEX,
    "everything_55": INDEX,
    "everything_271": INDEX,
    "everything_319": INDEX,
    "everything_351": INDEX,
    "everything_367": INDEX,
    "mapped_groups_237": CHANCE,
    "mapped_groups_341": CHANCE,
}
"""Why some DAGs end otherwise here; `docs/reference/airflow-compatibility.md` explains it at more length."""

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
    # All tasks that may run do so at the same time: the steps in which the runs were recorded.
    engine = Engine(tmp_path, slots=1000)
    with engine.store.begin() as tx:
        set_pool(tx, "default_pool", UNLIMITED)
    yield engine
    engine.close()


@pytest.mark.parametrize("theme", THEMES)
def test_random_dags_end_as_in_airflow(engine, theme):
    records = [record for record in RECORDED if record["id"].startswith(theme + "_")]
    engine.write("descriptions.json", json.dumps(records))
    runs = engine.start_dags(DAG_FILE)
    engine.settle()
    found = {record["id"]: compare(record, runs[record["id"]]) for record in records}
    assert [line for name, lines in found.items() if name not in ON_PURPOSE for line in lines] == []
    assert [name for name, lines in found.items() if name in ON_PURPOSE and not lines] == []


def compare(record: dict[str, Any], run: Run) -> list[str]:
    ours = {**together(run.states()), "the run": run.state}
    theirs = {**together(record["tasks"]), "the run": record["run"]}
    return [
        f"{record['id']}: {name} is {ours.get(name)}, in Airflow {theirs.get(name)}"
        for name in sorted({*ours, *theirs})
        if ours.get(name) != theirs.get(name)
    ]


def together(states: dict[str, str]) -> dict[str, str]:
    """The instances of mapped tasks; those that never ran and ended alike stand together under the task's name.

    Airflow makes the instances of a literal list when the run begins, and those of a mapped group one task at a time;
    we make them when there is something to run.
    """
    instances: dict[str, dict[str, str]] = {}
    for name, state in states.items():
        if name.endswith("]"):
            instances.setdefault(name.rpartition("[")[0], {})[name] = state
    result = {name: state for name, state in states.items() if name not in instances and not name.endswith("]")}
    for task, found in instances.items():
        same = set(found.values())
        result |= {task: same.pop()} if len(same) == 1 and same <= {"skipped", "upstream_failed"} else found
    return result


def test_records_cover_what_dags_are_made_of():
    text = json.dumps(RECORDED)
    states = Counter(state for record in RECORDED for state in record["tasks"].values())
    assert len(RECORDED) >= 400
    assert min(states[state] for state in ("success", "failed", "skipped", "upstream_failed")) > 100
    for word in ("choose", "otherwise", "go_on", "gives", "map", "setup", "teardown_of", "fails_run", "flaky", "empty"):
        assert text.count(f'"{word}"') > 20, word
    for rule in TRIGGER_RULES:
        assert text.count(f'"{rule}"') > 20 or rule == "all_done_setup_success"
