"""What commands say of tasks that have not begun, and of what does not exist."""

from __future__ import annotations

import pytest

from headrace.clock import to_micros
from headrace.definition import Node, Workflow
from headrace.handoff import TaskResult
from headrace.store import (
    NewRun,
    Report,
    RunGraph,
    Store,
    claim_tasks,
    create_run,
    ensure_project,
    record_results,
    register,
    save_file,
    start_queued_runs,
)
from headrace.testing.nodes import START

NOW = to_micros(START)


@pytest.fixture
def store(headrace):
    """The usual store, with run 1 of a workflow whose tasks `a` and `b` wait for an agent."""
    headrace.home.mkdir()
    store = Store(f"sqlite:///{headrace.home}/headrace.db")

    def work(tx):
        nodes = (Node(key="", kind="group"), *(Node(key=key, parent="", operator="x") for key in "ab"))
        flow = Workflow(name="w", language="python", nodes=nodes)
        (saved,) = save_file(tx, ensure_project(tx, "p", "/", NOW), "w.py", "1", [flow], NOW)
        create_run(tx, NewRun(saved.id, "r1"), NOW)
        start_queued_runs(tx, saved.id, NOW)

    store.transact(work)
    yield store
    store.dispose()


def claim(store):
    """An agent takes `a`."""

    def work(tx):
        agent_id = register(
            tx, kind="agent", name="x", place="here", pid=1, slots=1, queues=("default",), now=NOW, lease_micros=10**12
        )
        graph = RunGraph(tx, NOW)
        ((task, *_),) = claim_tasks(tx, graph, agent_id, "default", 1)
        graph.flush_events()
        return task

    return store.transact(work)


def end(store, task):
    def work(tx):
        graph = RunGraph(tx, NOW)
        result = TaskResult(task_id=task.id, fence=task.fence, outcome="success")
        record_results(tx, graph, [Report(task.attempt_id, result)])
        graph.flush_events()

    store.transact(work)


def test_tries_are_those_that_have_begun(headrace, store):
    claim(store)
    tasks = headrace.json("tasks", "1")[0]["tasks"]
    assert {key: (task["state"], task["tries"]) for key, task in tasks.items()} == {
        "a": ("running", 1),
        "b": ("scheduled", 0),
    }
    (line,) = [line for line in headrace("tasks", "1").out.splitlines() if line.startswith("b ")]
    assert line.split() == ["b", "scheduled"]


def test_why_there_is_no_log(headrace, store):
    missing = "there is no log of try 1 of `a` in run 1: the try "
    hint = "hint: `headrace why 1 a` says more"
    told = headrace("logs", "1", "a")
    assert told.returncode == 2 and f"{missing}has not begun" in told.err and hint in told.err
    task = claim(store)
    assert f"{missing}has printed nothing" in headrace("logs", "1", "a").err
    end(store, task)
    assert f"{missing}has ended: it printed nothing, or its log is" in headrace("logs", "1", "a").err


def test_runs_of_a_backfill_that_does_not_exist(headrace, store):
    told = headrace("runs", "--backfill", "99")
    assert (told.returncode, told.out) == (2, "")
    assert "there is no backfill 99" in told.err and "hint: `headrace backfill list` lists them" in told.err
