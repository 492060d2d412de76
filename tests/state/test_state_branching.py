"""Branches and short circuits, and what they remember."""

from __future__ import annotations

from memory_graph import group, start, task


def branch_of_two():
    return start(
        task("branch"),
        task("left", "branch"),
        task("right", "branch"),
        task("join", "left", "right", trigger_rule="none_failed_min_one_success"),
    )


def test_a_branch_skips_what_it_does_not_follow_and_the_join_runs():
    run = branch_of_two()
    run.succeed("branch", followed=("left",))
    assert run.states() == {"branch": "success", "left": "scheduled", "right": "skipped", "join": "none"}
    run.succeed("left", "join")
    assert run.attempt.state == "success"


def test_a_join_under_all_success_is_skipped():
    run = start(task("branch"), task("left", "branch"), task("right", "branch"), task("join", "left", "right"))
    run.succeed("branch", followed=("left",))
    assert run.state("join") == "skipped"


def test_a_branch_that_follows_nothing_skips_everything():
    run = branch_of_two()
    run.succeed("branch", followed=())
    assert run.states() == {"branch": "success", "left": "skipped", "right": "skipped", "join": "skipped"}
    assert run.attempt.state == "success"


def test_a_join_directly_below_the_branch_runs_if_it_is_followed():
    run = start(task("branch"), task("left", "branch"), task("join", "branch", "left", trigger_rule="none_failed"))
    run.succeed("branch", followed=("join",))
    assert run.states() == {"branch": "success", "left": "skipped", "join": "scheduled"}


def test_clearing_a_skipped_branch_alone_leaves_it_skipped():
    run = branch_of_two()
    run.succeed("branch", followed=("left",))
    run.clear("right")
    assert run.state("right") == "skipped"
    assert run.story("right") == ["skipped", "none", "skipped"]


def test_clearing_several_of_a_branch_counts_each_of_them_once():
    run = branch_of_two()
    run.succeed("branch", followed=("left",))
    run.succeed("left")
    run.succeed("join")
    run.clear("right", "join")
    assert run.states() == {"branch": "success", "left": "success", "right": "skipped", "join": "scheduled"}


def test_clearing_the_branch_lets_it_decide_again():
    run = branch_of_two()
    run.succeed("branch", followed=("left",))
    run.succeed("left", "join")
    run.clear("branch", "left", "right", "join")
    run.succeed("branch", followed=("right",))
    assert run.states() == {"branch": "success", "left": "skipped", "right": "scheduled", "join": "none"}


def test_a_group_that_is_not_followed_is_skipped_with_everything_in_it():
    run = start(task("branch"), group("g", "branch"), task("a", parent="g"), task("b", "branch"))
    run.succeed("branch", followed=("b",))
    assert run.states() == {"branch": "success", "g": "skipped", "a": "skipped", "b": "scheduled"}


def test_a_short_circuit_skips_all_it_names_whatever_their_rules():
    run = start(task("stop"), task("a", "stop"), task("b", "a", trigger_rule="all_done"))
    run.succeed("stop", skipped=("a", "b"))
    assert run.states() == {"stop": "success", "a": "skipped", "b": "skipped"}
    assert run.attempt.state == "success"


def test_a_short_circuit_that_names_only_direct_ones_respects_the_rules_below():
    run = start(task("stop"), task("a", "stop"), task("b", "a", trigger_rule="all_done"))
    run.succeed("stop", skipped=("a",))
    assert run.states() == {"stop": "success", "a": "skipped", "b": "scheduled"}


def test_a_short_circuit_never_overwrites_what_runs_or_has_ended():
    rules = {"trigger_rule": "always"}
    run = start(task("stop"), task("a", "stop", **rules), task("b", "stop", **rules), task("c", "stop", **rules))
    run.claim("a")
    run.fail("b")
    run.succeed("stop", skipped=("a", "b", "c"))
    assert run.states() == {"stop": "success", "a": "running", "b": "failed", "c": "skipped"}


def test_a_task_that_a_short_circuit_has_skipped_stays_skipped_when_cleared():
    run = start(task("stop"), task("a", "stop"))
    run.succeed("stop", skipped=("a",))
    run.clear("a")
    assert run.state("a") == "skipped"
    assert run.attempt.state == "success"
