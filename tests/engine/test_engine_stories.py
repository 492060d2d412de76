"""Whole runs on the real store, scheduler and agent, told as stories."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from headrace.definition import Length, Node, Retry, Schedule, Workflow
from headrace.handoff import TaskRequest, TaskResult
from headrace.state import Advance
from headrace.store.sql import Sql
from headrace.testing.engine import Engine

ONCE = ["scheduled", "queued", "running"]


def flow(*nodes: Node, name: str = "w", **fields) -> Workflow:
    return Workflow(name=name, language="python", nodes=(Node(key="", kind="group"), *nodes), **fields)


def node(key: str, *upstream: str, **fields) -> Node:
    return Node(**{"key": key, "parent": "", "upstream": upstream, "operator": "work", **fields})


def fail(request: TaskRequest):
    raise ValueError(f"try {request.try_number} of {request.key}")


def test_failed_task_is_scheduled_again_after_its_retry_interval(engine):
    run = engine.start_dig("""
        +load:
          sh>: exit 1
          _retry: {limit: 1, interval: 30}
    """)
    engine.settle()
    assert run.story("+load") == ["scheduled", "queued", "running", "up_for_retry"]
    engine.advance(seconds=30)
    assert run.story("+load")[4:] == ["scheduled"]
    engine.settle()
    assert run.story("+load")[4:] == [*ONCE, "failed"]
    assert run.state == "failed"


def test_a_dag_runs_its_functions_and_hands_their_results_on(engine):
    run = engine.start_dag("""
        from headrace import DAG, task

        with DAG("sums"):
            @task
            def numbers():
                return [1, 2, 3]

            @task
            def double(number):
                print("doubling", number)
                return 2 * number

            @task
            def total(numbers):
                return sum(numbers)

            total(double.expand(number=numbers()))
    """)
    engine.settle()
    assert run.state == "success"
    assert run.value("double") == [2, 4, 6]
    assert run.value("double[1]") == 4
    assert run.value("total") == 12
    assert "doubling 3" in run.log("double[2]")


def test_a_definition_runs_plain_functions(engine):
    seen = []
    run = engine.start(
        flow(node("a"), node("b", "a"), node("c", "b")),
        actions={"a": lambda request: [1, 2], "b": lambda request: seen.append(request.params)},
        params={"x": 1},
    )
    engine.settle()
    assert run.states() == {"a": "success", "b": "success", "c": "success"}
    assert run.value("a") == [1, 2]
    assert run.value("b") is None
    assert seen == [{"x": 1}]
    assert run.story() == ["running", "success"]


def test_an_exception_is_the_tasks_error(engine):
    run = engine.start(flow(node("a", retry=Retry(limit=1)), node("b", "a")), actions={"a": fail})
    engine.settle()
    assert run.states() == {"a": "failed", "b": "upstream_failed"}
    assert run.tries("a") == ["failed", "failed"]
    assert run.error("a") == "try 2 of a"


def test_the_end_of_one_run_starts_the_next(engine):
    one_at_a_time = flow(node("a"), max_active_runs=1)
    first = engine.start(one_at_a_time, run_key="first")
    second = engine.start(one_at_a_time, run_key="second", session="2026-01-01T00:00:00+00:00")
    assert (first.state, second.state) == ("running", "queued")
    engine.settle()
    assert (first.state, second.state) == ("success", "success")


def test_a_task_that_polls_is_called_again_with_what_it_kept(engine):
    def poke(request: TaskRequest):
        calls = request.poll_state.get("calls", 0) + 1
        if calls == 3:
            return calls
        return TaskResult(
            task_id=request.task_id, fence=request.fence, outcome="again", again_after_seconds=60,
            poll_state={"calls": calls},
        )  # fmt: skip

    run = engine.start(flow(node("a")), actions={"a": poke})
    engine.settle()
    assert run.story("a") == [*ONCE, "up_for_reschedule"]
    for _ in range(2):
        engine.advance(seconds=60)
        engine.settle()
    assert run.value("a") == 3
    assert run.task("a").try_number == 1


@pytest.mark.parametrize(("has_died", "kept"), [(True, {"job": 1}), (False, {})])
def test_a_new_try_goes_on_with_what_one_that_died_has_kept(engine, has_died, kept):
    seen = []

    def poll(request: TaskRequest):
        seen.append(request.poll_state)
        ending = {"outcome": "again", "poll_state": {"job": 1}} if len(seen) == 1 else {"outcome": "success"}
        if len(seen) == 2:
            ending = {"outcome": "failed", "has_died": has_died}
        return TaskResult(task_id=request.task_id, fence=request.fence, **ending)

    run = engine.start(flow(node("a", retry=Retry(limit=1))), actions={"a": poll})
    engine.settle()
    assert (run.state, seen) == ("success", [{}, {"job": 1}, kept])


def test_a_task_whose_subtasks_failed_begins_anew(engine):
    seen = []

    def grow(request: TaskRequest):
        seen.append(request.poll_state)
        claim = {"task_id": request.task_id, "fence": request.fence}
        if not request.poll_state:
            return TaskResult(**claim, outcome="again", poll_state={"job": len(seen)})
        return TaskResult(**claim, outcome="success", growth=(Node(key="a^sub", operator="work"),))

    run = engine.start(flow(node("a", retry=Retry(limit=1))), actions={"a": grow, "a^sub": fail})
    engine.settle()
    assert (run.state, seen) == ("failed", [{}, {"job": 1}, {}, {"job": 3}])


def test_a_run_over_its_time_fails(engine):
    def wait(request: TaskRequest):
        return TaskResult(task_id=request.task_id, fence=request.fence, outcome="again", again_after_seconds=1e6)

    run = engine.start(flow(node("a"), node("b", "a"), timeout_seconds=600), actions={"a": wait})
    engine.settle()
    engine.advance(minutes=10)
    assert (run.state, run.reason) == ("failed", "timed_out")
    assert run.states() == {"a": "skipped", "b": "skipped"}


def test_a_lease_does_not_run_out_while_the_test_moves_the_clock(engine):
    run = engine.start(flow(node("a"), node("b", "a")))
    engine.advance(days=1)
    engine.settle()
    assert run.state == "success"


def test_a_schedule_starts_a_run_for_each_time(engine):
    hourly = Schedule(
        type="cron", spec={"expression": "0 * * * *"}, catch_up="all", start_at="2026-02-03T05:00:00+00:00"
    )
    engine.save(flow(node("a"), schedule=hourly))
    engine.settle()
    engine.advance(hours=3)
    engine.settle()
    with engine.store.read() as tx:
        rows = tx.run(Sql("SELECT logical_at, state FROM run ORDER BY id"))
    times = [datetime.fromtimestamp(at / 1e6, UTC).hour for at, _ in rows]
    assert times == [5, 6, 7]
    assert {state for _, state in rows} == {"success"}


def test_what_a_person_asks_for(engine):
    outcomes = iter([fail, lambda request: None, lambda request: None])
    run = engine.start(flow(node("a"), node("b", "a")), actions={"b": lambda request: next(outcomes)(request)})
    engine.settle()
    assert run.states() == {"a": "success", "b": "failed"}
    run.clear("b")
    engine.settle()
    assert run.states() == {"a": "success", "b": "success"}
    run.retry()
    assert run.states() == {"a": "success", "b": "success"}
    assert run.state == "success"


def test_a_cancelled_run_ends_without_running_what_waits(engine):
    run = engine.start(flow(node("a", retry=Retry(limit=1, delay_seconds=60)), node("b", "a")), actions={"a": fail})
    engine.settle()
    run.cancel()
    assert run.state == "canceled"
    assert run.states() == {"a": "canceled", "b": "canceled"}


def test_a_growing_task_ends_after_what_it_grew(engine):
    def grow(request: TaskRequest):
        grown = (Node(key="a^sub", operator="work"),)
        return TaskResult(task_id=request.task_id, fence=request.fence, outcome="success", growth=grown)

    run = engine.start(flow(node("a"), node("b", "a")), actions={"a": grow, "a^sub": lambda request: 5})
    engine.settle()
    assert run.story("a") == [*ONCE, "planned", "success"]
    assert run.value("a^sub") == 5


def test_a_mapped_task_without_anything_to_map_over_is_skipped(engine):
    mapped = Node(
        key="m", parent="", upstream=("a",), kind="mapped", operator="work", expand=Length(op="result", task="a")
    )
    run = engine.start(flow(node("a"), mapped), actions={"a": lambda request: []})
    engine.settle()
    assert run.states() == {"a": "success", "m": "skipped"}


def test_a_task_that_is_not_there_is_named_with_those_that_are(engine):
    run = engine.start(flow(node("a")))
    with pytest.raises(AssertionError, match=r"0 tasks are called `nowhere`.*'a'"):
        run.story("nowhere")


def test_the_engine_runs_on_any_store(tmp_path, store_url):
    engine = Engine(tmp_path, store_url)
    run = engine.start_dig("""
        +a:
          echo>: hello
        +b:
          py>: tasks.answer
    """)
    engine.write("tasks.py", "def answer(): return 42")
    engine.settle()
    assert run.states() == {"+main+a": "success", "+main+b": "success"}
    engine.close()


@pytest.mark.parametrize(
    ("grown", "message"),
    [
        ((Node(key="x"), Node(key="x")), "two tasks with the key `x`"),
        ((Node(key="b"),), "wants to add `b`, but the run has such a task already"),
        ((Node(key="x", upstream=("y",)),), "waits for `y`"),
    ],
)
def test_a_task_that_wants_to_add_nonsense_fails_and_nothing_else_does(engine, grown, message):
    def grow(request: TaskRequest) -> TaskResult:
        return TaskResult(task_id=request.task_id, fence=request.fence, outcome="success", growth=grown)

    run = engine.start(flow(node("a"), node("b")), actions={"a": grow})
    engine.settle()
    assert run.states() == {"a": "failed", "b": "success"}
    assert message in run.error("a")


def test_a_result_that_cannot_be_applied_does_not_hold_up_the_others(engine, monkeypatch, caplog):
    complete = Advance.complete

    def stumble(self, task, result):
        if task.key == "a" and task.fence < 3 and result.outcome == "success":
            raise RuntimeError("a bug of ours")
        complete(self, task, result)

    monkeypatch.setattr(Advance, "complete", stumble)
    run = engine.start(flow(node("a"), node("b"), node("c", "b")))
    engine.settle()
    assert run.states() == {"a": "success", "b": "success", "c": "success"}
    assert "its result could not be applied and is dropped" in caplog.text


def test_a_task_whose_result_can_never_be_applied_fails_in_the_end(engine, monkeypatch):
    complete = Advance.complete

    def stumble(self, task, result):
        if task.key == "a" and result.outcome == "success":
            raise RuntimeError("a bug of ours")
        complete(self, task, result)

    monkeypatch.setattr(Advance, "complete", stumble)
    run = engine.start(flow(node("a"), node("b", "a")))
    for _ in range(5):
        engine.settle()  # what was dropped is handed back in the next step
    assert run.states() == {"a": "failed", "b": "upstream_failed"}
    assert run.error("a") == "what the try has left could not be recorded: RuntimeError: a bug of ours"


def test_a_result_that_is_told_twice_counts_once(engine):
    run = engine.start(flow(node("a"), node("b", "a")))
    poll = engine.agent._executor.poll

    def twice(seconds):
        return [result for result in poll(seconds) for _ in range(2)]

    engine.agent._executor.poll = twice
    engine.settle()
    assert run.states() == {"a": "success", "b": "success"}
