"""How big and how old a run may get."""

from __future__ import annotations

import pytest

from headrace.definition import Node, Retry, Workflow
from headrace.handoff import TaskResult
from headrace.scheduler import AgeKeeper
from headrace.testing.engine import Engine

LOOP = """
    +loop:
      loop>: {count}
      _parallel: true
      _do: {{echo>: "${{i}}"}}
"""


@pytest.fixture
def engine(prepared_url, tmp_path):
    engine = Engine(tmp_path, prepared_url, max_tasks_per_run=10)
    yield engine
    engine.close()


def test_a_task_that_would_add_too_many_tasks_fails_and_its_handler_still_runs(engine):
    run = engine.start_dig(LOOP.format(count=20) + "      _error: {echo>: told}\n")
    engine.settle()
    assert run.states() == {
        "+main+loop": "failed", "+main+loop^error": "success", "+main^failure-alert": "success",
    }  # fmt: skip
    assert run.error("+loop") == (
        "too many tasks: the run has 2, 21 would be added, and the limit is 10\n"
        "hint: the setting is `limits.max_tasks_per_run`"
    )
    assert run.tries("+loop") == ["failed"]


def test_results_of_one_transaction_are_counted_together(engine):
    def grow(request):
        added = tuple(Node(key=f"{request.key}.{n}", operator="work") for n in range(3))
        return TaskResult(task_id=request.task_id, fence=request.fence, outcome="success", growth=added)

    tasks = [Node(key=key, parent="", operator="work") for key in "abc"]
    workflow = Workflow(name="w", language="python", nodes=(Node(key="", kind="group"), *tasks))
    run = engine.start(workflow, actions=dict.fromkeys("abc", grow))
    engine.settle()
    # A root, three tasks, and room for six more.
    assert [run.states()[key] for key in "abc"] == ["success", "success", "failed"]


def test_generations_that_were_replaced_do_not_count(engine):
    run = engine.start_dig("""
        +g:
          _retry: 5
          +a: {echo>: a}
          +b: {echo>: b}
          +c: {sh>: "echo >> tries; test $(wc -l < tries) -gt 5"}
    """)
    engine.settle()
    assert (run.state, run.task("+g").try_number) == ("success", 6)


def waiting() -> Workflow:
    def node(key: str, **fields) -> Node:
        return Node(key=key, parent="", operator="work", **fields)

    slow = node("slow", retry=Retry(limit=9, delay_seconds=600))
    after = node("after", upstream=("slow",))
    return Workflow(name="w", language="python", nodes=(Node(key="", kind="group"), slow, after))


def fail(request):
    raise ValueError("not yet")


@pytest.mark.parametrize(
    ("limits", "stops"),
    [
        ({"run_seconds": 1500, "task_seconds": None}, True),
        ({"run_seconds": None, "task_seconds": 1500}, True),
        ({"run_seconds": 9999, "task_seconds": 9999}, False),
        ({"run_seconds": None, "task_seconds": None}, False),
    ],
)
def test_runs_that_are_too_old_are_stopped(engine, limits, stops):
    engine.services.append(AgeKeeper(engine.store, **limits))
    run = engine.start(waiting(), actions={"slow": fail})
    engine.settle()
    for _ in range(2):
        engine.advance(seconds=600)
        engine.settle()
    assert run.state == "running"
    engine.advance(seconds=600)
    engine.settle()
    assert (run.state, run.reason) == (("failed", "timed_out") if stops else ("running", None))


def test_the_tasks_of_a_dig_workflow_that_is_too_old_are_canceled(engine):
    engine.services.append(AgeKeeper(engine.store, run_seconds=60, task_seconds=None))
    run = engine.start_dig("+a: {wait>: 1h}\n+b: {echo>: never}\n_error: {echo>: never}")
    engine.settle()
    engine.advance(seconds=61)
    engine.settle()
    assert (run.state, run.reason) == ("failed", "timed_out")
    assert run.states() == {"+main+a": "canceled", "+main+b": "canceled", "+main^failure-alert": "success"}


def test_a_run_that_is_cleared_has_all_its_time_again(engine):
    run = engine.start_dag("""
    from datetime import timedelta
    from airflow.sdk import DAG, task
    with DAG("d", dagrun_timeout=timedelta(seconds=60)):
        @task(retries=1, retry_delay=timedelta(seconds=40))
        def shaky(ti):
            if ti.try_number % 2: raise ValueError("not at first")
        shaky()
    """)
    for _ in range(2):
        engine.settle()
        engine.advance(seconds=40)
        engine.settle()
        assert (run.state, run.states()) == ("success", {"shaky": "success"})
        engine.advance(hours=1)
        run.clear("shaky")
    engine.settle()
    engine.advance(seconds=61)
    assert (run.state, run.reason, run.states()) == ("failed", "timed_out", {"shaky": "skipped"})
