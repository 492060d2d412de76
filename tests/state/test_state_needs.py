"""What a task needs at a distance, and ends that others see changed."""

from __future__ import annotations

import pytest
from memory_graph import mapped, start, task

from headrace.state import State

ALL_DONE = {"trigger_rule": "all_done"}


def scope(**rule):
    """A setup, a task that follows it, and one that needs the setup without following it."""
    return start(
        task("setup", is_needed=True), task("first", "setup"), task("second", "first", needs=("setup",), **rule)
    )


@pytest.mark.parametrize(("end", "state"), [("fail", "upstream_failed"), ("skip", "skipped")])
def test_a_setup_that_did_not_succeed_decides_whatever_the_rule_says(end, state):
    run = scope(**ALL_DONE)
    getattr(run, end)("setup")
    assert run.state("second") == state


def test_a_setup_that_succeeded_leaves_the_rule_to_decide():
    run = scope(**ALL_DONE)
    run.succeed("setup")
    run.fail("first")
    assert run.state("second") == "scheduled"


def whose_rule_holds_early():
    """A run in which `second` waits only for the end of what it needs, at a distance."""
    run = start(
        task("setup", is_needed=True),
        task("other"),
        task("first", "setup", "other"),
        task("second", "first", needs=("setup",), **ALL_DONE),
    )
    run.fail("other")
    return run


def test_a_task_whose_rule_holds_early_waits_for_the_setup_and_is_told_of_its_end():
    run = whose_rule_holds_early()
    assert (run.state("first"), run.state("second")) == ("upstream_failed", "none")
    run.succeed("setup")
    assert run.state("second") == "scheduled"


def test_every_instance_of_a_mapped_setup_is_needed():
    run = start(mapped("setup", 2, is_needed=True), task("first", "setup"), task("second", "first", needs=("setup",)))
    run.succeed("setup[0]")
    run.skip("setup[1]")
    assert run.state("second") == "skipped"


def test_a_short_circuit_that_comes_later_makes_skipped_of_upstream_failed():
    run = start(
        task("bad"), task("stop"), task("a", "bad", "stop"), task("after", "a", "late", **ALL_DONE), task("late")
    )
    run.fail("bad")
    assert run.state("a") == "upstream_failed"
    run.succeed("stop", skipped=("a",))
    assert run.story("a") == ["upstream_failed", "skipped"]
    assert (run.task("after").skipped, run.task("after").upstream_failed) == (1, 0)
    run.succeed("late", "after")
    assert run.attempt.state == "success"


def test_a_branch_that_comes_later_takes_back_the_failure_of_the_run():
    run = start(
        task("bad"), task("branch"), task("a", "bad", "branch"), task("b", "branch"), task("seen", "bad", **ALL_DONE)
    )
    run.fail("bad")
    run.succeed("branch", followed=("b",))
    run.succeed("b", "seen")
    assert (run.state("a"), run.attempt.state) == ("skipped", "success")


def test_instances_without_a_result_leave_a_shorter_list_to_map_over():
    run = start(mapped("one", 3), mapped("two", "one", **ALL_DONE))
    run.succeed("one[0]", "one[2]")
    run.fail("one[1]")
    assert [run.state(name) for name in ("two[0]", "two[1]")] == ["scheduled", "scheduled"]


def test_instances_without_any_result_leave_nothing_to_map_over():
    run = start(mapped("one", 2), mapped("two", "one", **ALL_DONE))
    run.fail("one[0]", "one[1]")
    assert run.state("two") == "skipped"


@pytest.mark.parametrize(("marked", "state"), [("success", "scheduled"), ("failed", "upstream_failed")])
def test_a_task_is_told_when_somebody_says_how_what_it_needs_ended(marked, state):
    run = whose_rule_holds_early()
    run.do(lambda advance: advance.mark([run.task("setup")], State(marked)))
    assert run.state("second") == state
