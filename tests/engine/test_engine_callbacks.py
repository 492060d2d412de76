"""Callbacks of runs and tasks, from the DAG file to the function that is called."""

from __future__ import annotations

import pytest

from headrace.store import list_errands

HEAD = """
import json
from datetime import timedelta
from pathlib import Path
from airflow.sdk import DAG, task

def tell(name):
    def callback(context):
        keys = ("reason", "run_id", "exception")
        told = {key: str(context[key]) for key in keys if key in context}
        ti = context.get("ti")
        told |= {"who": name, "state": context["dag_run"].state, "task": ti and ti.task_id}
        with Path(__file__).with_name("told.jsonl").open("a") as file:
            print(json.dumps(told), file=file)
    return callback

def broken(context):
    raise RuntimeError("the callback itself")
"""


@pytest.fixture
def told(engine):
    def read() -> list[dict]:
        import json

        path = engine.folder / "project" / "told.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    return read


def errands(engine):
    with engine.store.read() as tx:
        return [(row.kind, row.task, row.state, row.error and row.error.message) for row in list_errands(tx)]


def run(engine, body: str, options: str = ""):
    lines = "\n".join(f"    {line}" for line in body.strip().splitlines())
    return engine.start_dag(f'{HEAD}\nwith DAG("flow", {options}):\n{lines}\n')


GOOD = """
@task
def good():
    return 1
good()
"""
BAD = """
@task
def bad():
    raise ValueError("boom")
@task
def good():
    return 1
[good(), bad()]
"""


def test_the_run_tells_of_its_success(engine, told):
    one = run(engine, GOOD, 'on_success_callback=[tell("first"), broken, tell("second")], on_failure_callback=broken')
    engine.settle()
    assert one.state == "success"
    assert [(what["who"], what["reason"], what["state"], what["task"]) for what in told()] == [
        ("first", "success", "success", "good"), ("second", "success", "success", "good"),
    ]  # fmt: skip
    assert errands(engine) == [("run_ended", "good", "failed", "the callback itself")]


def test_the_run_tells_of_its_failure_with_the_task_that_failed(engine, told):
    one = run(engine, BAD, 'on_success_callback=tell("s"), on_failure_callback=tell("f")')
    engine.settle()
    assert one.state == "failed"
    assert [(what["who"], what["reason"], what["task"]) for what in told()] == [("f", "task_failure", "bad")]
    assert errands(engine) == [("run_ended", "bad", "done", None)]


def test_a_run_that_timed_out_says_so(engine, told):
    one = run(
        engine,
        """
@task(retries=3, retry_delay=timedelta(hours=1))
def bad():
    raise ValueError("boom")
bad()
""",
        'dagrun_timeout=timedelta(minutes=5), on_failure_callback=tell("f")',
    )
    engine.settle()
    engine.advance(minutes=6)
    engine.settle()
    assert (one.state, one.reason) == ("failed", "timed_out")
    assert [(what["reason"], what["task"]) for what in told()] == [("timed_out", "bad")]


def test_a_run_that_was_killed_calls_nobody(engine, told):
    one = run(engine, GOOD, 'on_success_callback=tell("s"), on_failure_callback=tell("f")')
    engine.tick()
    one.cancel()
    engine.settle()
    assert one.state == "canceled"
    assert (told(), errands(engine)) == ([], [])


def test_a_workflow_without_callbacks_has_no_errands(engine):
    run(engine, BAD)
    engine.settle()
    assert errands(engine) == []
