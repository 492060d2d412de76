"""Workflows end here as they ended in Digdag: which tasks there are, their states, what they wait for and see."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from headrace.actions.digdag_states import digdag_states
from headrace.errors import HeadraceError
from headrace.store import list_edges, list_tasks
from headrace.testing.engine import Engine
from headrace.testing.run import Run

HERE = Path(__file__).parent
RECORDED: list[dict[str, Any]] = json.loads((HERE / "recorded_digdag.json").read_text())
THEMES = sorted({record["id"].rpartition("_")[0] for record in RECORDED})

EARLY = "what Digdag finds when the task runs, if it does, is found here when the file is read"
LENIENT = "a file that means something is not refused for what nobody reads in it"
BRACES = "0.9 ends an expression at its first `}` and leaves `${}` as it is; 0.10 counts braces, and so do we"
BUILT_INS = "0.9 lets parameters hide built-in variables; 0.10 does not, and nor do we"
COPIES = "0.9 copies generated tasks when their group is retried and generates them, too; 0.10 does not"
INNER = "in Digdag, a group that is retried within a retried group has lost its tasks"
KEPT = "in Digdag, what a polling task keeps survives a failure"
NESTED = "in Digdag, nested maps see outer parameters unevaluated"
ALERT = "the alert of a failed workflow goes out whatever its exports are"
QUOTED = "the error that a handler sees is not evaluated, whatever it quotes"
OFFSET = "a time zone that is an offset is that of moment, too"
LOST = "in Digdag, a task is resumed without its subtasks, and what they stored is lost"
ONCE = "in Digdag, a handler that ran in the attempt before does not run again"

ON_PURPOSE = {
    **dict.fromkeys(("refused_retry-nonsense", "refused_retry-group-nonsense", "refused_retry-without-limit"), EARLY),
    **dict.fromkeys(("refused_retry-type", "refused_type-number", "refused_type-null"), EARLY),
    **dict.fromkeys(("refused_empty-operator", "refused_type-and-operator", "traps_unknown-operator"), EARLY),
    **dict.fromkeys(("traps_disabled-with-nonsense", "yaml_null-key"), LENIENT),
    **dict.fromkeys(("scopes_own-maps", "scopes_nested"), NESTED),
    **dict.fromkeys(("traps_built-ins-win-over-params", "scopes_timezone-parameter"), BUILT_INS),
    "expressions_braces": BRACES,
    "traps_retry-group-of-loops": COPIES,
    "traps_retry-inside-retried-group-later": INNER,
    **dict.fromkeys(("traps_polls-then-fails", "everything_119", "everything_149"), KEPT),
    "scopes_broken-export": ALERT,
    "scopes_error-of-template": QUOTED,
    "scopes_time-zone-offset": OFFSET,
    **dict.fromkeys(("resumed_loop-done", "resumed_own-export"), LOST),
    "resumed_error-fails-again": ONCE,
}
"""Why some workflows end otherwise here; `docs/reference/digdag-compatibility.md` explains it at more length."""

SESSION = datetime(2026, 2, 3, tzinfo=UTC)
"""The session of all runs, as in `RealDigdag.java`."""


@pytest.fixture
def engine(tmp_path):
    engine = Engine(tmp_path, slots=1000, start=SESSION)
    shutil.copy(HERE / "digdag" / "dig_operators.py", tmp_path / "project")
    yield engine
    engine.close()


@pytest.mark.parametrize("theme", THEMES)
def test_workflows_end_as_in_digdag(engine, theme):
    records = [record for record in RECORDED if record["id"].rpartition("_")[0] == theme]
    runs = {record["id"]: start(engine, record) for record in records}
    finish(engine, runs)
    found = {record["id"]: compare(engine, record, runs[record["id"]]) for record in records}
    again = {record["id"]: resume(engine, record["id"], runs[record["id"]]) for record in records if "then" in record}
    finish(engine, runs)
    for record in (record for record in records if "then" in record):
        found[record["id"]] += differences(f"{record['id']} resumed", record["then"], again[record["id"]]())
    assert [line for name, lines in found.items() if name not in ON_PURPOSE for line in lines] == []
    assert [name for name, lines in found.items() if name in ON_PURPOSE and not lines] == []


def start(engine: Engine, record: dict[str, Any]) -> Run | str:
    """A run of the workflow, or why it is none."""
    for name, text in record["files"].items():
        engine.write(name, text)
    try:
        return engine.start_dig(record["files"][f"{record['id']}.dig"], record["id"], params=record.get("params"))
    except HeadraceError as error:
        return str(error)


def finish(engine: Engine, runs: dict[str, Run | str]) -> None:
    engine.settle()
    while any(isinstance(run, Run) and run.state == "running" for run in runs.values()):
        engine.advance(seconds=1)
        engine.settle()


def resume(engine: Engine, workflow: str, run: Run) -> Callable[[], dict[str, Any]]:
    """Try again what failed; what is returned tells how that ended."""
    calls_before = len(read_calls(engine, workflow))
    run.retry()
    return lambda: outcome(engine, workflow, run, calls_before)


def compare(engine: Engine, record: dict[str, Any], run: Run | str) -> list[str]:
    """What is different, in sentences."""
    if "refused" in record or isinstance(run, str):
        same = "refused" in record and isinstance(run, str)
        return [] if same else [f"{record['id']}: {run}, in Digdag {record.get('refused')}"]
    return differences(record["id"], record, outcome(engine, record["id"], run))


def differences(name: str, theirs: dict[str, Any], ours: dict[str, Any]) -> list[str]:
    lines = [] if ours["success"] == theirs["success"] else [f"{name}: success is {ours['success']} here"]
    for part in ("tasks", "upstream", "story"):
        lines += [
            f"{name}: {part} of {task}: {ours[part].get(task)}, in Digdag {theirs[part].get(task)}"
            for task in sorted({*ours[part], *theirs[part]})
            if ours[part].get(task) != theirs[part].get(task)
        ]
    return lines + [f"{name}: {line}" for line in out_of_order(theirs["upstream"], ours["order"])]


def outcome(engine: Engine, workflow: str, run: Run, calls_before: int = 0) -> dict[str, Any]:
    """How a run ended, as `real_digdag` tells it of Digdag; and the names of its tasks in the order of their calls."""
    with engine.store.read() as tx:
        tasks, edges = list_tasks(tx, run.attempt_id), list_edges(tx, run.attempt_id)
    states = digdag_states(tasks)
    names = {task.id: task.key.removeprefix(f"+{workflow}") for task in tasks}
    calls = read_calls(engine, workflow)[calls_before:]
    return {
        "success": run.state == "success",
        "tasks": {names[task.id]: states[task.id].label for task in tasks},
        "upstream": {
            names[task.id]: sorted(names[above] for above, below in edges if below == task.id)
            for task in tasks
            if any(below == task.id for _, below in edges)
        },
        "story": {name: [seen for other, seen in calls if other == name] for name, _ in calls},
        "order": [name for name, _ in calls],
    }


def read_calls(engine: Engine, workflow: str) -> list[tuple[str, Any]]:
    """Each call of an operator: the task, and what it saw."""
    file = engine.folder / "project" / f"{workflow}.jsonl"
    entries = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
    return [(entry["task"].removeprefix(f"+{workflow}"), entry["sees"]) for entry in entries if "task" in entry]


def out_of_order(upstream: dict[str, list[str]], order: list[str]) -> list[str]:
    """Tasks that began, the first time or the last time, before one that they wait for."""
    wrong = []
    for task, above in ((task, above) for task, names in upstream.items() for above in names):
        mine = [at for at, name in enumerate(order) if is_within(name, task)]
        theirs = [at for at, name in enumerate(order) if is_within(name, above)]
        if mine and theirs and (mine[0] < theirs[0] or mine[-1] < theirs[-1]):
            wrong.append(f"{task} began before {above}")
    return wrong


def is_within(name: str, task: str) -> bool:
    return name == task or name.startswith((f"{task}+", f"{task}^"))


def test_records_cover_what_workflows_are_made_of():
    text = json.dumps([record["files"] for record in RECORDED])
    states = Counter(state for record in RECORDED for state in record.get("tasks", {}).values())
    assert len(RECORDED) >= 400
    assert sum("refused" in record for record in RECORDED) > 40
    assert sum("then" in record for record in RECORDED) > 40
    assert min(states[state] for state in ("success", "error", "group_error", "blocked")) > 100
    for word in ("_parallel", "_background", "_after", "_error", "_check", "_retry", "_export", "_disable", "_do"):
        assert text.count(f"{word}:") > 20, word
