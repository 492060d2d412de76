"""Every state that a task of a Python DAG can be in is seen in the history of real runs."""

from __future__ import annotations

from headrace.actions.clear import clear
from headrace.actions.selecting import Selection
from headrace.definition import Deferral, Length, Node, Retry, Workflow
from headrace.handoff import TaskRequest, TaskResult
from headrace.state import State
from headrace.store import RunGraph, claim_tasks
from headrace.store.sql import Sql

EVENTS = Sql("SELECT before, after FROM event WHERE task_id IS NOT NULL")
OF_DAGS = set(State) - {State.PLANNED, State.CANCELED}
"""All but those that only this engine has."""


def node(key: str, *upstream: str, **fields) -> Node:
    return Node(**{"key": key, "parent": "", "upstream": upstream, "operator": "work", **fields})


def outcome(name: str, **fields):
    return lambda request: TaskResult(task_id=request.task_id, fence=request.fence, outcome=name, **fields)


def test_each_state_is_observed(engine):
    lengths = iter(([1, 2], [1]))

    def fail(request: TaskRequest):
        raise ValueError("boom")

    def again(request: TaskRequest):
        return None if request.poll_state else outcome("again", again_after_seconds=5, poll_state={"n": 1})(request)

    def wait(request: TaskRequest):
        deferral = Deferral(trigger="a.Trigger", method="go_on")
        return None if request.resume is not None else outcome("deferred", deferral=deferral)(request)

    mapped = Node(
        key="m",
        parent="",
        kind="mapped",
        upstream=("source",),
        operator="work",
        expand=Length(op="result", task="source"),
    )
    nodes = [node("bad", retry=Retry(limit=1, delay_seconds=5)), node("after", "bad"), node("skips"), node("looks")]
    nodes.append(node("waits"))
    workflow = Workflow(name="w", language="python", nodes=(Node(key="", kind="group"), *nodes, node("source"), mapped))
    actions = {"bad": fail, "skips": outcome("skipped"), "looks": again, "waits": wait}
    actions["source"] = lambda request: next(lengths)
    run = engine.start(workflow, actions)
    engine.settle()
    assert run.states()["waits"] == "deferred"
    run.fire("waits", event="done")
    engine.advance(seconds=5)
    engine.settle()
    # Cleared, the mapped task gets one instance less; and what runs while it is cleared is restarted.
    clear(engine.store, engine.clock, str(run.id), ["source"], Selection(downstream=True))
    engine.settle()
    clear(engine.store, engine.clock, str(run.id), ["bad"])
    with engine.store.begin() as tx:
        graph = RunGraph(tx, 1)
        claim_tasks(tx, graph, engine.agent.id, "default", 1)
        graph.flush_events()
    clear(engine.store, engine.clock, str(run.id), ["bad"])
    with engine.store.read() as tx:
        seen = {state for row in tx.run(EVENTS) for state in row}
    assert {str(state) for state in OF_DAGS} <= seen
    assert run.states()["m[1]"] == "removed"
    assert run.story("waits")[-4:] == ["scheduled", "queued", "running", "success"]
