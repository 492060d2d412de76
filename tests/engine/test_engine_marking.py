"""Somebody says how tasks and runs ended."""

from __future__ import annotations

import msgspec
import pytest

from headrace.actions.clear import clear
from headrace.actions.mark import mark
from headrace.actions.selecting import Selection
from headrace.definition import Length, Node, Past, Retry, Workflow
from headrace.errors import UsageError
from headrace.handoff import TaskRequest, TaskResult
from headrace.store import RunGraph, claim_tasks, held_tasks


def flow(*nodes: Node, **fields) -> Workflow:
    waited_for = {key for node in nodes for key in node.upstream}
    deciding = [msgspec.structs.replace(node, decides=node.key not in waited_for) for node in nodes]
    return Workflow(name="w", language="python", nodes=(Node(key="", kind="group"), *deciding), **fields)


def node(key: str, *upstream: str, **fields) -> Node:
    return Node(**{"key": key, "parent": "", "upstream": upstream, "operator": "work", **fields})


def bad(request: TaskRequest):
    raise ValueError("boom")


def hold(engine, run) -> None:
    """Have the agent's name on whatever can be claimed, without running it."""
    engine.tick()
    with engine.store.begin() as tx:
        graph = RunGraph(tx, 1)
        claim_tasks(tx, graph, engine.agent.id, "default", 10)
        graph.flush_events()


def test_marking_a_failed_task_lets_what_follows_it_be_decided_again(engine):
    run = engine.start(flow(node("a"), node("b", "a"), node("c", "b")), {"a": bad})
    engine.settle()
    assert run.state == "failed"
    (marked,) = mark(engine.store, engine.clock, "success", str(run.id), ["a"])
    assert (marked.tasks, marked.cleared) == (["a"], ["b", "c"])
    engine.settle()
    assert run.states() == {"a": "success", "b": "success", "c": "success"}
    assert run.state == "success"
    assert run.story("a")[-2:] == ["failed", "success"]


def test_marking_the_last_task_decides_the_run_anew(engine):
    run = engine.start(flow(node("a"), node("b", "a")), {"b": bad})
    engine.settle()
    run.mark("success", "b")
    assert run.state == "success"
    run.mark("failed", "b")
    assert run.state == "failed"
    run.mark("skipped", "b")
    assert run.state == "success"


def test_a_marked_task_that_runs_is_undead_and_its_end_changes_nothing(engine):
    run = engine.start(flow(node("a"), node("b", "a")))
    hold(engine, run)
    assert run.states()["a"] == "running"
    run.mark("success", "a")
    with engine.store.read() as tx:
        assert held_tasks(tx, engine.agent.id) == []
    assert run.states() == {"a": "success", "b": "scheduled"}


def test_marking_keeps_the_number_of_tries_and_a_clear_grants_a_new_series(engine):
    run = engine.start(flow(node("a", retry=Retry(limit=1))), {"a": bad})
    engine.settle()
    assert (run.task("a").try_number, run.task("a").max_tries) == (2, 1)
    run.mark("success", "a")
    assert run.task("a").try_number == 2
    run.clear("a")
    assert (run.task("a").try_number, run.task("a").max_tries) == (3, 3)
    engine.settle()
    assert run.tries("a") == ["failed"] * 4


def test_a_mapped_task_is_marked_with_its_instances(engine):
    mapped = Node(key="m", parent="", kind="mapped", operator="work", expand=Length(op="literal", length=2))
    run = engine.start(flow(mapped, node("b", "m")), {"m": bad})
    engine.settle()
    assert run.states() == {"m": "failed", "m[0]": "failed", "m[1]": "failed", "b": "upstream_failed"}
    mark(engine.store, engine.clock, "success", str(run.id), ["m"])
    engine.settle()
    assert set(run.states().values()) == {"success"}
    run.mark("failed", "m[0]")
    assert run.states()["m"] == "failed"


def test_what_follows_a_mapped_task_waits_for_an_instance_that_is_open_again(engine):
    """A mark below one of two instances opens it again; the other one is not done either."""

    def grow_or_wait(request: TaskRequest):
        claim = {"task_id": request.task_id, "fence": request.fence}
        if request.map_index == 1:
            return TaskResult(**claim, outcome="again", again_after_seconds=60.0)
        return TaskResult(**claim, outcome="success", growth=(Node(key="m^sub", operator="work"),))

    mapped = Node(key="m", parent="", kind="mapped", operator="work", expand=Length(op="literal", length=2))
    run = engine.start(flow(mapped, node("b", "m", trigger_rule="all_done")), {"m": grow_or_wait})
    engine.settle()
    run.mark("failed", "m^sub[0]")
    engine.settle()
    assert run.states()["m[1]"] == "up_for_reschedule"
    assert run.states()["b"] == "none"


def test_a_group_is_marked_with_everything_in_it(engine):
    run = engine.start_dig("""
        +group:
          +first:
            sh>: exit 1
          +second:
            echo>: no
        +after:
          echo>: yes
    """)
    engine.settle()
    assert run.state == "failed"
    mark(engine.store, engine.clock, "success", str(run.id), ["+group"])
    engine.settle()
    assert set(run.states().values()) == {"success"}
    assert run.state == "success"


def test_a_group_that_never_opened_is_decided_again_when_a_task_in_it_is_marked(engine):
    run = engine.start_dig("""
        +first:
          sh>: exit 1
        +group:
          +inner:
            echo>: no
    """)
    engine.settle()
    assert run.states()["+main+group"] == "upstream_failed"
    run.mark("failed", "+inner")
    assert run.states()["+main+group"] == "upstream_failed"
    engine.settle()
    assert run.state == "failed"


@pytest.mark.parametrize("state", ["success", "failed"])
def test_marking_a_run_ends_what_runs_and_skips_the_rest_but_cleans_up(engine, state):
    run = engine.start(flow(node("a"), node("b", "a"), node("down", "b", trigger_rule="all_done", cleans_up=True)))
    hold(engine, run)
    mark(engine.store, engine.clock, state, str(run.id), [])
    assert run.states() == {"a": state, "b": "skipped", "down": "scheduled"}
    assert run.state == "running"
    engine.settle()
    assert (run.states()["down"], run.state, run.reason) == ("success", state, f"marked_{state}")


def test_a_run_that_ended_may_be_marked_and_a_clear_takes_the_mark_away(engine):
    run = engine.start(flow(node("a")), {"a": bad})
    engine.settle()
    run.mark("success")
    assert (run.state, run.states()) == ("success", {"a": "failed"})
    run.clear("a")
    engine.settle()
    assert (run.state, run.reason) == ("failed", None)


def test_a_run_cannot_be_skipped(engine):
    run = engine.start(flow(node("a")))
    with pytest.raises(UsageError, match="a run cannot be skipped"):
        mark(engine.store, engine.clock, "skipped", str(run.id), [])


def test_marking_and_clearing_reach_other_tasks_and_other_runs(engine):
    workflow = flow(node("a"), node("b", "a"), node("c", "b"))
    runs = [
        engine.start(workflow, {"b": bad}, session=day, run_key=day)
        for day in ("2026-01-01", "2026-01-02", "2026-01-03")
    ]
    engine.settle()
    marked = mark(engine.store, engine.clock, "success", str(runs[1].id), ["b"], Selection(upstream=True, future=True))
    assert [(one.run.id, one.tasks) for one in marked] == [(runs[1].id, ["a", "b"]), (runs[2].id, ["a", "b"])]
    engine.settle()
    assert [run.state for run in runs] == ["failed", "success", "success"]
    cleared = clear(engine.store, engine.clock, str(runs[1].id), ["b"], Selection(past=True, only_failed=True))
    assert [(one.run.id, one.tasks) for one in cleared] == [(runs[1].id, []), (runs[0].id, ["b"])]


def test_marking_lets_the_next_run_go(engine):
    workflow = flow(node("a", past=Past()))
    first, second = (
        engine.start(workflow, {"a": lambda request: bad(request) if request.run.run_key == "1" else None},
                     session=f"2026-01-0{key}", run_key=key)
        for key in "12"
    )  # fmt: skip
    engine.settle()
    assert (first.state, second.state) == ("failed", "running")
    first.mark("success", "a")
    engine.settle()
    assert second.state == "success"


def test_clearing_only_what_runs_restarts_it(engine):
    run = engine.start(flow(node("a"), node("b")))
    hold(engine, run)
    (cleared,) = clear(engine.store, engine.clock, str(run.id), (), Selection(only_running=True))
    assert cleared.tasks == ["a", "b"]
    assert set(run.states().values()) == {"restarting"}
