"""How tasks open after one another, how groups close, and what a run's result is."""

from __future__ import annotations

import pytest
from memory_graph import Engine, group, start, start_tree, task, workflow

from headrace.definition import NOOP
from headrace.state import State


def test_a_task_goes_from_none_to_success():
    run = start(task("a"))
    run.succeed("a")
    assert run.story("a") == ["scheduled", "queued", "running", "success"]
    assert run.attempt.state == "success"


def test_a_task_opens_when_the_last_of_its_upstream_tasks_has_ended():
    run = start(task("a"), task("b"), task("c", "a", "b"))
    run.succeed("a")
    assert run.state("c") == "none"
    run.succeed("b")
    assert run.state("c") == "scheduled"


def test_an_empty_workflow_succeeds_at_once():
    assert start().attempt.state == "success"


def test_tasks_without_work_succeed_at_once_and_count_a_try():
    run = start(task("a", operator=NOOP), task("b", "a", operator=NOOP))
    assert run.states() == {"a": "success", "b": "success"}
    assert run.task("b").try_number == 1
    assert run.attempt.state == "success"


def test_a_long_chain_of_tasks_without_work_needs_no_deep_stack():
    chain = [task(f"t{i}", *([f"t{i - 1}"] if i else []), operator=NOOP) for i in range(3_000)]
    run = Engine(workflow(*chain), is_checked=False)
    assert run.attempt.state == "success"


def test_deeply_nested_groups_need_no_deep_stack():
    depth = 1_500
    nest = [group(f"g{i}", parent=f"g{i - 1}" if i else "") for i in range(depth)]
    run = Engine(workflow(*nest, task("a", parent=f"g{depth - 1}")), is_checked=False)
    run.succeed("a")
    assert run.attempt.state == "success"


def test_skips_and_failures_pass_on_to_what_follows():
    run = start(task("a"), task("b", "a"), task("c", "b"), task("x"), task("y", "x"), task("z", "y"))
    run.fail("a")
    run.skip("x")
    states = run.states()
    assert [states[key] for key in "abc"] == ["failed", "upstream_failed", "upstream_failed"]
    assert [states[key] for key in "xyz"] == ["skipped", "skipped", "skipped"]


# ---- the result of a Python DAG: its leaves ------------------------------------------------------------------------


def test_a_failed_task_in_the_middle_is_hidden_by_a_leaf_that_succeeds():
    run = start(task("a"), task("b", "a", trigger_rule="all_done"))
    run.fail("a")
    run.succeed("b")
    assert run.attempt.state == "success"


def test_a_failed_leaf_fails_the_run_after_everything_else_has_ended():
    run = start(task("a"), task("b"))
    run.fail("a")
    assert run.attempt.state == "running"
    run.succeed("b")
    assert run.attempt.state == "failed"


def test_a_leaf_that_never_ran_because_of_a_failure_fails_the_run():
    run = start(task("a"), task("b", "a"))
    run.fail("a")
    assert run.attempt.state == "failed"


def test_a_run_whose_leaves_are_all_skipped_succeeds():
    run = start(task("a"), task("b", "a"))
    run.skip("a")
    assert run.attempt.state == "success"


def test_a_watching_leaf_fails_the_run_in_spite_of_other_leaves():
    run = start(task("a"), task("b", "a", trigger_rule="all_done"), task("watch", "a", "b", trigger_rule="one_failed"))
    run.fail("a")
    run.succeed("b")
    run.fail("watch")
    assert run.attempt.state == "failed"


# ---- trees: groups decide ------------------------------------------------------------------------------------------


def test_children_open_with_their_group_and_the_group_ends_after_them():
    run = start_tree(task("a"), group("g", "a"), task("b", parent="g"), task("c", "b", parent="g"), task("d", "g"))
    assert run.state("b") == "none"
    run.succeed("a")
    assert run.states() == {"a": "success", "g": "planned", "b": "scheduled", "c": "none", "d": "none"}
    run.succeed("b", "c")
    assert run.states() == {"a": "success", "g": "success", "b": "success", "c": "success", "d": "scheduled"}


def test_an_empty_group_succeeds_as_soon_as_it_opens():
    run = start_tree(group("g"), task("a", "g"))
    assert run.states() == {"g": "success", "a": "scheduled"}


def test_a_failed_child_fails_its_group_only_after_its_siblings_ended():
    run = start_tree(group("g"), task("a", parent="g"), task("b", parent="g"), task("c", "g"))
    run.claim("b")
    run.fail("a")
    assert run.state("g") == "planned"
    run.succeed("b")
    assert run.states() == {"g": "failed", "a": "failed", "b": "success", "c": "upstream_failed"}
    assert run.attempt.state == "failed"


def test_failure_climbs_through_nested_groups_and_brings_its_error_along():
    run = start_tree(group("g"), group("h", parent="g"), task("a", parent="h"), task("b", "g"))
    run.fail("a", message="no disk")
    assert run.states() == {"g": "failed", "h": "failed", "a": "failed", "b": "upstream_failed"}
    assert "no disk" in (run.root.error or "")


@pytest.mark.parametrize(("outcome", "expected"), [("failed", "upstream_failed"), ("skipped", "skipped")])
def test_a_group_that_never_opens_takes_everything_below_it_along(outcome, expected):
    run = start_tree(task("a"), group("g", "a"), group("h", parent="g"), task("b", parent="h"), task("c", parent="g"))
    run.end("a", outcome)
    assert {run.state(key) for key in "ghbc"} == {expected}


def test_a_task_that_waits_for_one_inside_a_group_that_never_opens_learns_it():
    run = start(task("a"), group("g", "a"), task("b", parent="g"), task("c", "b", trigger_rule="all_done"))
    run.fail("a")
    assert run.states() == {"a": "failed", "g": "upstream_failed", "b": "upstream_failed", "c": "scheduled"}


def test_edges_may_lead_into_and_out_of_groups():
    run = start(task("a"), group("g"), task("b", "a", parent="g"), task("c", parent="g"), task("d", "b"))
    assert run.states() == {"a": "scheduled", "g": "planned", "b": "none", "c": "scheduled", "d": "none"}
    run.succeed("a", "b", "d", "c")
    assert run.attempt.state == "success"


# ---- resuming ------------------------------------------------------------------------------------------------------


def test_resumed_tasks_count_as_done():
    flow = workflow(task("a"), task("b", "a"))
    run = Engine(flow, resumed=["a"])
    assert run.states() == {"a": "success", "b": "scheduled"}


def test_a_resumed_group_stays_closed():
    flow = workflow(group("g"), task("a", parent="g"), task("b", parent="g"), task("c", "g"))
    run = Engine(flow, resumed=["g", "a"])
    assert run.states() == {"g": "success", "a": "success", "b": "skipped", "c": "scheduled"}


def test_a_run_of_which_everything_is_resumed_ends_at_once():
    flow = workflow(group("g"), task("a", parent="g"))
    assert Engine(flow, resumed=["g", "a"]).attempt.state == "success"


def test_what_became_claimable_is_listed_once_and_only_if_it_still_is():
    run = start(task("a"), task("b"), task("c", "b", trigger_rule="always"))
    run.queue("b")
    run.queue("a")

    def apply(advance):
        for name in ("a", "b"):
            advance.hand_back(run.task(name), "agent")
        advance.clear([run.task("a")])

    assert sorted(one.key for one in run.do(apply).scheduled) == ["a", "b"]
    assert run.state("c") == State.SCHEDULED
