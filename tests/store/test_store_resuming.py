"""A new attempt carries over what the one before finished: results, grown tasks, instances, decisions."""

from __future__ import annotations

import msgspec
import pytest
from store_bench import Bench, flow, group, node

from headrace.definition import Length, Node
from headrace.store import AttemptPlan, add_attempt, latest_attempt, schema, start_queued_runs
from headrace.store.schema import attempt

RESULT = {"return_value": msgspec.Raw(b'"kept"')}


class Runs:
    """One run of a workflow and its attempts, driven by one agent."""

    def __init__(self, bench: Bench, workflow) -> None:
        self.bench = bench
        self.agent = bench.agent()
        self.attempt = bench.start(workflow)

    def work(self, **endings) -> list[str]:
        """Claim and end tasks until none is left; returns what ran, in order. An ending is what `end` takes."""
        ran = []
        while claimed := self.bench.claim(self.agent):
            for task in claimed:
                ran.append(task.name)
                given = dict(endings.get(task.name, {}))
                self.bench.end(task, given.pop("outcome", "success"), **given)
        return ran

    def resume(self, plan: AttemptPlan | None = None) -> int:
        row = self.bench.rows(attempt, attempt.c.id == self.attempt)[0]

        def work(tx):
            fields = {} if plan is None else {"plan": plan}
            add_attempt(tx, row.run_id, row.workflow_id, self.attempt, "", self.bench.now, **fields)
            start_queued_runs(tx, row.workflow_id, self.bench.now)
            return latest_attempt(tx, row.run_id)

        self.attempt = self.bench.store.transact(work)
        return self.attempt

    def states(self):
        return self.bench.states(self.attempt)

    def run_state(self):
        return self.bench.rows(attempt, attempt.c.id == self.attempt)[0].state

    def params(self, key):
        (request,) = [one for name, one in self.bench.claim_requests(self.agent).items() if name == key]
        return request.params


FAIL = {"outcome": "failed"}


def call(*names: str) -> tuple[Node, ...]:
    """What a `call>` of a workflow with these tasks in a row grows."""
    top = Node(key="+call^sub", kind="group")
    keys = [f"+call^sub+{name}" for name in names]
    rows = [
        Node(key=key, parent="+call^sub", upstream=(keys[at - 1],) if at else (), operator="work")
        for at, key in enumerate(keys)
    ]
    return (top, *rows)


def test_store_inside_a_grown_task_is_still_visible(bench):
    runs = Runs(bench, flow(node("+call"), node("+after", "+call")))
    runs.work(**{"+call": {"growth": call("a")}, "+call^sub+a": {"store": {"color": "red"}}, "+after": FAIL})
    assert runs.run_state() == "failed"
    runs.resume()
    assert runs.states() == {
        "+call": "success",
        "+call^sub": "success",
        "+call^sub+a": "success",
        "+after": "scheduled",
    }
    assert runs.params("+after")["color"] == "red"


def test_grown_tasks_that_succeeded_are_not_run_again(bench):
    runs = Runs(bench, flow(node("+call"), node("+after", "+call")))
    grow = {"+call": {"growth": call("a", "b", "c")}}
    assert runs.work(**grow, **{"+call^sub+a": {"store": {"n": 1}}, "+call^sub+b": FAIL}) == [
        "+call", "+call^sub+a", "+call^sub+b",
    ]  # fmt: skip
    runs.resume()
    assert runs.work(**grow) == ["+call", "+call^sub+b", "+call^sub+c", "+after"]
    assert runs.run_state() == "success"
    assert set(runs.states().values()) == {"success"}


def test_everything_grown_was_done_before(bench):
    runs = Runs(bench, flow(node("+call"), node("+other")))
    runs.work(**{"+call": {"growth": call("a"), "store": {"x": 1}}, "+other": FAIL})
    runs.resume()
    assert runs.work() == ["+other"]
    assert runs.run_state() == "success"
    runs_again = runs.states()
    assert runs_again["+call^sub+a"] == "success"


def test_retry_of_a_group_runs_again_what_was_carried_over(bench):
    workflow = flow(group("+g", retry={"limit": 1}), node("+call", parent="+g"))
    workflow = msgspec.convert(msgspec.to_builtins(workflow), type(workflow))
    runs = Runs(bench, workflow)
    grow = {"+call": {"growth": call("a", "b")}}
    runs.work(**grow, **{"+call^sub+b": FAIL})
    runs.resume()
    ran = runs.work(**grow, **{"+call^sub+b": FAIL})
    assert ran == ["+call", "+call^sub+b", "+call", "+call^sub+a", "+call^sub+b"]
    assert runs.run_state() == "failed"


def test_failure_handlers_run_again(bench):
    handler = Node(key="+a^error", operator="work")
    runs = Runs(bench, flow(node("+a", on_failure=(handler,))))
    assert runs.work(**{"+a": FAIL}) == ["+a", "+a^error"]
    runs.resume()
    assert runs.work(**{"+a": FAIL}) == ["+a", "+a^error"]


def mapped(key: str, over: str, *upstream: str) -> Node:
    return node(key, over, *upstream, kind="mapped", expand=Length(op="result", task=over))


def lengths(count: int):
    value = msgspec.Raw(msgspec.json.encode(list(range(count))))
    return {"values": {"return_value": value}, "lengths": {"return_value": count}}


def test_instances_that_succeeded_are_kept_and_the_others_run_again(bench):
    runs = Runs(bench, flow(node("list"), mapped("m", "list"), node("sum", "m")))
    runs.work(list=lengths(3), **{"m[0]": {"values": RESULT}, "m[1]": FAIL, "m[2]": {"values": RESULT}})
    assert runs.run_state() == "failed"
    runs.resume()
    assert runs.work() == ["m[1]", "sum"]
    assert runs.run_state() == "success"
    tasks = bench.tasks(runs.attempt)
    assert bench.values(tasks["m[0]"].id) == {"return_value": '"kept"'}
    assert tasks["sum"].expected == tasks["sum"].succeeded == 3


def test_mapped_task_that_succeeded_is_not_mapped_anew(bench):
    runs = Runs(bench, flow(node("list"), mapped("m", "list"), node("sum", "m"), node("end", "sum")))
    runs.work(list=lengths(2), sum=FAIL)
    runs.resume()
    assert runs.work() == ["sum", "end"]
    assert runs.run_state() == "success"


def test_mapping_over_another_number_keeps_what_still_is(bench):
    runs = Runs(bench, flow(node("list"), mapped("m", "list"), node("sum", "m")))
    runs.work(list=lengths(3), **{"m[1]": FAIL})
    runs.resume(AttemptPlan(carried=("m",)))
    assert runs.work(list=lengths(2)) == ["list", "m[1]", "sum"]
    assert runs.states() == {
        "list": "success", "m": "success", "m[0]": "success", "m[1]": "success", "m[2]": "removed", "sum": "success",
    }  # fmt: skip


def test_mapped_task_whose_upstream_fails_takes_its_kept_instances_along(bench):
    runs = Runs(bench, flow(node("list"), node("gate"), mapped("m", "list", "gate"), node("sum", "m")))
    runs.work(list=lengths(2), **{"m[1]": FAIL})
    runs.resume(AttemptPlan(carried=("m", "list")))
    assert runs.work(gate=FAIL) == ["gate"]
    assert runs.run_state() == "failed"
    states = runs.states()
    assert (states["m[0]"], states["m[1]"], states["sum"]) == ("success", "upstream_failed", "upstream_failed")


def test_tasks_in_lockstep_go_on_index_by_index(bench):
    def step(key, *upstream):
        return node(key, *upstream, kind="mapped", expand=Length(op="result", task="list"), lockstep="g")

    runs = Runs(bench, flow(node("list"), step("x", "list"), step("y", "x"), node("sum", "y", "x")))
    runs.work(list=lengths(3), **{"x[1]": FAIL, "y[2]": FAIL})
    assert runs.states()["y[1]"] == "upstream_failed"
    runs.resume()
    assert sorted(runs.work(**{"y[2]": FAIL})) == ["x[1]", "y[1]", "y[2]"]
    runs.resume()
    assert runs.work() == ["y[2]", "sum"]
    assert runs.run_state() == "success"


def test_branch_that_was_taken_stays_taken(bench):
    nodes = (node("branch"), node("left", "branch"), node("right", "branch"), node("later", "right"))
    runs = Runs(bench, flow(*nodes, node("cut"), node("c1", "cut"), node("c2", "c1")))
    runs.work(branch={"followed": ("left",)}, left=FAIL, cut={"skipped": ("c1", "c2")})
    runs.resume()
    assert runs.work() == ["left"]
    states = runs.states()
    assert [states[key] for key in ("right", "later", "c1", "c2")] == ["skipped"] * 4


def test_only_chosen_tasks_are_carried_over(bench):
    runs = Runs(bench, flow(node("a"), node("b", "a"), node("c", "b")))
    runs.work(c=FAIL)
    runs.resume(AttemptPlan(carried=("a",)))
    assert runs.work() == ["b", "c"]


def test_attempt_of_some_tasks_ends_with_them(bench):
    runs = Runs(bench, flow(node("a", decides=False), node("b", "a", decides=False), node("c", "b")))
    runs.work(b=FAIL)
    runs.resume(AttemptPlan(only=("", "b")))
    assert runs.work(b=FAIL) == ["b"]
    assert runs.run_state() == "failed", "b decides now: nothing comes after it"
    runs.resume(AttemptPlan(only=("", "a", "b")))
    assert runs.work() == ["a", "b"]
    assert runs.run_state() == "success"


def test_dry_attempt_calls_nothing_and_leaves_nothing_to_carry_over(bench):
    runs = Runs(bench, flow(node("a"), node("b", "a")))
    runs.work(a=FAIL)
    runs.resume(AttemptPlan(is_dry=True))
    assert runs.work() == []
    assert runs.run_state() == "success"


def test_attempt_may_have_parameters_of_its_own(bench):
    runs = Runs(bench, flow(node("a")))
    runs.work(a=FAIL)
    runs.resume(AttemptPlan(params={"n": 2}))
    assert runs.params("a") == {"n": 2}


@pytest.mark.parametrize("generations", [2, 3])
def test_resuming_again_and_again_loses_nothing(bench, generations):
    runs = Runs(bench, flow(node("+call"), node("list"), mapped("m", "list"), node("+end", "+call", "m")))
    runs.work(list=lengths(2), **{"+call": {"growth": call("a")}, "+call^sub+a": {"store": {"x": 1}}, "+end": FAIL})
    for _ in range(generations):
        runs.resume()
        assert runs.work(**{"+end": FAIL}) == ["+end"]
    runs.resume()
    assert runs.params("+end") == {"x": 1}


def test_instances_in_lockstep_that_are_carried_over_know_what_they_wait_for(bench):
    def step(key, *upstream):
        return node(key, *upstream, kind="mapped", expand=Length(op="result", task="list"), lockstep="g")

    def counted():
        rows = bench.rows(schema.task, schema.task.c.attempt_id == runs.attempt)
        return {(row.key, row.map_index): (row.expected, row.succeeded) for row in rows if row.map_index >= 0}

    runs = Runs(bench, flow(node("list"), step("x", "list"), step("y", "x"), node("last", "y")))
    runs.work(list=lengths(1), last=FAIL)
    before = counted()
    assert before == {("x", 0): (1, 1), ("y", 0): (1, 1)}
    runs.resume()
    assert counted() == before, "everything is carried over"
    runs.work(last=FAIL)
    runs.resume(AttemptPlan(carried=("y",)))
    assert counted() == {("y", 0): (1, 0)}, "what is not carried over is still to come"
