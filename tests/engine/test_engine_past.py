"""Rules that look at the run before, fail fast, and pausing after failures: on the real engine."""

from __future__ import annotations

from datetime import datetime

import pytest

from headrace.actions.why import why
from headrace.clock import to_micros
from headrace.definition import Length, Node, Past, Retry, Workflow
from headrace.handoff import TaskError, TaskRequest, TaskResult
from headrace.state import PastRules, RunBefore, is_met
from headrace.store import (
    NewRun,
    create_run,
    list_runs,
    workflows_named,
)

DAYS = ("2026-01-01", "2026-01-02", "2026-01-03")


def flow(*nodes: Node, **fields) -> Workflow:
    return Workflow(name="w", language="python", nodes=(Node(key="", kind="group"), *nodes), **fields)


def node(key: str, *upstream: str, **fields) -> Node:
    return Node(**{"key": key, "parent": "", "upstream": upstream, "operator": "work", **fields})


def failing_on(*days: str):
    def act(request: TaskRequest):
        assert request.run.logical_time is not None
        if request.run.logical_time.strftime("%Y-%m-%d") in days:
            raise ValueError("boom")

    return act


def start_days(engine, workflow, actions, days=DAYS):
    return [engine.start(workflow, actions, session=day, run_key=day) for day in days]


def sentence(engine, run, task: str) -> str:
    return why(engine.store, engine.clock, str(run.id), task).reasons[0].sentence


def test_a_task_waits_until_it_succeeded_in_the_run_before_and_goes_on_at_once(engine):
    workflow = flow(node("load", past=Past()))
    first, second, third = start_days(engine, workflow, {"load": failing_on("2026-01-01")})
    engine.settle()
    assert [run.state for run in (first, second, third)] == ["failed", "running", "running"]
    assert second.states() == third.states() == {"load": "none"}
    assert f"for the run before it, run {first.id}" in sentence(engine, second, "load")
    assert "there the task is failed" in sentence(engine, second, "load")
    assert "there the task is none" in sentence(engine, third, "load")
    engine.save(workflow, {})
    first.clear("load")
    engine.settle()
    assert [run.state for run in (first, second, third)] == ["success"] * 3


def test_the_agent_alone_lets_the_next_run_go(engine):
    """No scheduler is needed between the end of one task and the beginning of the next."""
    first, second = start_days(engine, flow(node("load", past=Past())), {}, DAYS[:2])
    engine.tick()
    for _ in range(6):
        engine.agent.step(0.0)
    assert (first.state, second.state) == ("success", "success")


def test_skipped_counts_as_fine_and_other_tasks_do_not_wait(engine):
    def skip(request: TaskRequest):
        return TaskResult(task_id=request.task_id, fence=request.fence, outcome="skipped")

    workflow = flow(node("load", past=Past()), node("free"))
    first, second = start_days(engine, workflow, {"load": skip, "free": failing_on("2026-01-01")}, DAYS[:2])
    engine.settle()
    assert (first.states(), second.states()) == (
        {"load": "skipped", "free": "failed"}, {"load": "skipped", "free": "success"},
    )  # fmt: skip


@pytest.mark.parametrize("waits", [False, True])
def test_wait_for_downstream_waits_for_what_follows_directly(engine, waits):
    workflow = flow(
        node("load", past=Past(with_downstream=waits)),
        node("check", "load", retry=Retry(limit=1, delay_seconds=60)),
        node("later", "check"),
    )
    first, second = start_days(engine, workflow, {"check": failing_on("2026-01-01")}, DAYS[:2])
    engine.settle()
    assert first.states()["check"] == "up_for_retry"
    assert second.states()["load"] == ("none" if waits else "success")
    if waits:
        assert "a task that follows it directly is up_for_retry" in sentence(engine, second, "load")
        engine.save(workflow, {})
        engine.advance(seconds=60)
        engine.settle()
        assert second.state == "success"


def test_a_mapped_task_waits_for_every_instance(engine):
    mapped = Node(
        key="load", parent="", kind="mapped", operator="work", expand=Length(op="literal", length=2), past=Past()
    )

    def act(request: TaskRequest):
        if request.map_index == 1 and failing:
            raise ValueError("boom")

    failing = [True]
    first, second = start_days(engine, flow(mapped), {"load": act}, DAYS[:2])
    engine.settle()
    assert first.states()["load[1]"] == "failed"
    assert second.states() == {"load": "none"}
    failing.clear()
    first.clear("load[1]")
    engine.settle()
    assert (first.state, second.state) == ("success", "success")


def test_a_run_that_is_held_up_is_no_deadlock(engine):
    first, second = start_days(engine, flow(node("load", past=Past())), {"load": failing_on(DAYS[0])}, DAYS[:2])
    engine.settle()
    engine.advance(hours=2)
    engine.settle()
    assert (first.state, second.state) == ("failed", "running")


@pytest.mark.parametrize("waits", [False, True])
def test_skipping_may_wait_for_the_past_too(engine, waits):
    nodes = (node("a"), node("b", "a", past=Past(before_skipping=waits)))

    def skip_second(request: TaskRequest):
        if request.run.logical_time.day == 2:
            return TaskResult(task_id=request.task_id, fence=request.fence, outcome="skipped")
        return None

    actions = {"a": skip_second, "b": failing_on(DAYS[0])}
    _, second = start_days(engine, flow(*nodes), actions, DAYS[:2])
    engine.settle()
    assert second.states() == {"a": "skipped", "b": "none" if waits else "skipped"}


def before(*states, has_earlier=True, downstream=(), day=1) -> RunBefore:
    return RunBefore(7, datetime.fromisoformat(f"2026-01-0{day}T00:00:00+00:00"), states, downstream, has_earlier)


@pytest.mark.parametrize(
    ("past", "run", "met"),
    [
        (Past(), None, True),
        (Past(), before("success"), True),
        (Past(), before("success", "skipped", "removed"), True),
        (Past(), before("success", "failed"), False),
        (Past(), before("upstream_failed"), False),
        (Past(), before("none"), False),
        (Past(), before(has_earlier=True), False),
        (Past(), before(has_earlier=False), True),
        (Past(ignores_first=False), before(has_earlier=False), False),
        (Past(since="2026-01-02T00:00:00+00:00"), before("failed", day=1), True),
        (Past(since="2026-01-01T00:00:00+00:00"), before("failed", day=1), False),
        (Past(with_downstream=True), before("success", downstream=("success", "skipped")), True),
        (Past(with_downstream=True), before("success", downstream=("success", "running")), False),
        (Past(), before("success", downstream=("failed",)), True),
    ],
)
def test_what_the_run_before_allows(past, run, met):
    assert is_met(past, run) is met


def test_whom_the_end_of_a_task_may_set_free():
    rules = PastRules(flow(node("a", past=Past(with_downstream=True)), node("b", "a", past=Past()), node("c", "b")))
    assert [rules.affected_by(key) for key in "abc"] == [["a"], ["b", "a"], []]


def create(engine, workflow_id: int, day: str, kind: str) -> None:
    at = to_micros(datetime.fromisoformat(f"{day}T00:00:00+00:00"))
    engine.store.transact(lambda tx: create_run(tx, NewRun(workflow_id, day, kind, logical_at=at, run_after=0), at))


def states_of_runs(engine) -> dict[str, str]:
    with engine.store.read() as tx:
        return {run.key: run.state for run in list_runs(tx)}


def test_order_is_by_logical_time_not_by_creation(engine):
    workflow_id = engine.save(flow(node("load", past=Past())), {"load": failing_on(DAYS[0])})
    for day in reversed(DAYS):
        create(engine, workflow_id, day, "scheduled")
    engine.settle()
    assert states_of_runs(engine) == {DAYS[0]: "failed", DAYS[1]: "running", DAYS[2]: "running"}


@pytest.mark.parametrize(("skips_manual", "state"), [(True, "success"), (False, "running")])
def test_a_run_by_hand_in_between_may_not_count(engine, skips_manual, state):
    workflow = flow(node("load", past=Past(skips_manual=skips_manual)))
    workflow_id = engine.save(workflow, {"load": failing_on(DAYS[1])})
    for day, kind in zip(DAYS, ("scheduled", "manual", "scheduled"), strict=True):
        create(engine, workflow_id, day, kind)
    engine.settle()
    assert states_of_runs(engine) == dict(zip(DAYS, ("success", "failed", state), strict=True))


# ---- fail fast and pausing ---------------------------------------------------------------------------------------


def test_the_first_failure_stops_the_rest_but_not_what_cleans_up(engine):
    workflow = flow(
        node("first"),
        node("bad", "first"),
        node("after", "bad"),
        node("again", retry=Retry(limit=3, delay_seconds=600)),
        node("down", "after", "again", trigger_rule="all_done", cleans_up=True, decides=False),
        fails_fast=True,
    )

    def bad(request: TaskRequest):
        raise ValueError("boom")

    run = engine.start(workflow, {"again": bad, "bad": bad})
    engine.settle()
    assert run.states() == {
        "first": "success", "bad": "failed", "after": "skipped", "again": "skipped", "down": "success",
    }  # fmt: skip
    assert run.state == "failed"


def test_a_running_task_fails_with_the_first_failure_and_its_late_report_changes_nothing(engine):
    run = engine.start(flow(node("slow"), node("bad"), fails_fast=True), {"bad": failing_on()})
    engine.tick()
    with engine.store.begin() as tx:
        from headrace.store import Report, RunGraph, claim_tasks, record_results

        graph = RunGraph(tx, 1)
        tasks = {claim.task.key: claim.task for claim in claim_tasks(tx, graph, engine.agent.id, "default", 10)}
        error = TaskError(type="E", message="boom")
        results = [
            TaskResult(task_id=tasks["bad"].id, fence=1, outcome="failed", error=error),
            TaskResult(task_id=tasks["slow"].id, fence=1, outcome="success"),
        ]
        record_results(tx, graph, [Report(run.attempt_id, result) for result in results])
        graph.flush_events()
    assert run.states() == {"slow": "failed", "bad": "failed"}


def test_a_workflow_is_paused_when_so_many_runs_in_a_row_failed(engine):
    workflow = flow(node("a"), max_consecutive_failures=2)

    def is_paused() -> bool:
        with engine.store.read() as tx:
            return workflows_named(tx, "w")[0].is_paused

    actions = {"a": failing_on(DAYS[0], DAYS[2], "2026-01-04")}
    for day, expected in zip((*DAYS, "2026-01-04"), (False, False, False, True), strict=True):
        engine.start(workflow, actions, session=day, run_key=day)
        engine.settle()
        assert is_paused() is expected
