"""Mapped tasks in lockstep: index by index among themselves, all together for everybody else."""

from __future__ import annotations

import pytest
from memory_graph import dag, mapped, retry, start, task

from headrace.definition import Workflow, check_workflow
from headrace.errors import DefinitionError
from headrace.state import State


def step(key: str, over: str | int, *upstream: str, **fields):
    return mapped(key, over, *upstream, lockstep="g", **fields)


def later(key: str, over: str, *upstream: str, **fields):
    """A task in lockstep that does not itself wait for the source."""
    node = step(key, over, *upstream, **fields)
    return type(node)(**{n: getattr(node, n) for n in node.__struct_fields__} | {"upstream": upstream})


def chain_of_two():
    run = start(task("s"), step("a", "s"), later("b", "s", "a"), task("after", "b"))
    run.succeed("s", length=2)
    return run


def test_each_index_goes_on_without_waiting_for_the_others():
    run = chain_of_two()
    run.succeed("a[0]")
    assert (run.state("b[0]"), run.state("b[1]"), run.state("a[1]")) == ("scheduled", "none", "scheduled")
    run.succeed("b[0]")
    assert run.state("after") == "none"
    run.succeed("a[1]", "b[1]", "after")
    assert run.attempt.state == "success"


def test_all_of_them_are_expanded_as_soon_as_the_length_is_known():
    run = chain_of_two()
    assert {run.state(f"b[{index}]") for index in (0, 1)} == {"none"}


def test_a_failure_stops_only_its_own_index():
    run = chain_of_two()
    run.fail("a[1]")
    run.succeed("a[0]", "b[0]")
    assert (run.state("b[1]"), run.state("after"), run.attempt.state) == ("upstream_failed",) * 2 + ("failed",)


def test_a_skip_passes_on_within_its_index_only():
    run = chain_of_two()
    run.skip("a[0]")
    run.succeed("a[1]", "b[1]")
    assert (run.state("b[0]"), run.state("after")) == ("skipped", "skipped")


def test_rules_look_at_the_same_index_only():
    run = start(step("a", 2), step("b", 2, "a", trigger_rule="one_failed"))
    run.fail("a[0]")
    assert run.state("b[0]") == "scheduled"
    run.succeed("a[1]")
    assert run.state("b[1]") == "skipped"


def test_literal_lengths_are_known_at_once_and_instances_wait_for_tasks_outside():
    run = start(task("before"), step("a", 2, "before"), step("b", 2, "a"))
    assert (run.state("a[0]"), run.state("b[1]")) == ("none", "none")
    run.succeed("before")
    assert (run.state("a[0]"), run.state("a[1]")) == ("scheduled", "scheduled")


def test_an_upstream_task_that_fails_reaches_every_index():
    run = start(task("before"), step("a", 2, "before"), step("b", 2, "a"))
    run.fail("before")
    assert {run.state(f"{key}[{i}]") for key in "ab" for i in (0, 1)} == {"upstream_failed"}
    assert run.attempt.state == "failed"


def test_all_instances_of_a_mapped_task_outside_are_waited_for():
    run = start(mapped("m", 2), step("a", 2, "m"))
    run.succeed("m[0]")
    assert run.state("a[0]") == "none"
    run.succeed("m[1]")
    assert run.state("a[0]") == "scheduled"


def test_nothing_to_map_over_skips_all_of_them():
    run = start(task("s"), step("a", "s"), later("b", "s", "a"), task("after", "b", trigger_rule="all_done"))
    run.succeed("s", length=0)
    assert run.states() == {"s": "success", "a": "skipped", "b": "skipped", "after": "scheduled"}


def test_a_failed_source_beats_their_own_rules():
    run = start(task("s"), step("a", "s", trigger_rule="all_done"), later("b", "s", "a", trigger_rule="all_done"))
    run.fail("s")
    assert (run.state("a"), run.state("b")) == ("upstream_failed", "upstream_failed")


def test_instances_are_retried_while_others_go_on():
    run = start(step("a", 2, retry=retry(1, 30)), step("b", 2, "a"))
    run.fail("a[0]")
    run.succeed("a[1]", "b[1]")
    run.advance(seconds=30)
    run.succeed("a[0]", "b[0]")
    assert run.attempt.state == "success"


def test_a_branch_decides_for_its_own_index():
    run = start(step("branch", 2), step("left", 2, "branch"), step("right", 2, "branch"))
    run.succeed("branch[0]", followed=("left",))
    run.succeed("branch[1]", followed=("right",))
    assert [run.state(name) for name in ("left[0]", "left[1]", "right[0]", "right[1]")] == [
        "scheduled", "skipped", "skipped", "scheduled",
    ]  # fmt: skip


def test_a_branch_in_lockstep_remembers_what_it_decided():
    run = start(step("branch", 2), step("left", 2, "branch"))
    run.succeed("branch[0]", followed=())
    run.succeed("branch[1]", followed=("left",))
    run.clear("left[0]", "left[1]")
    assert (run.state("left[0]"), run.state("left[1]")) == ("skipped", "scheduled")


def test_a_branch_outside_skips_every_index():
    run = start(task("branch"), step("a", 2, "branch"), task("other", "branch"))
    run.succeed("branch", followed=("other",))
    assert (run.state("a[0]"), run.state("a[1]"), run.state("other")) == ("skipped", "skipped", "scheduled")


def test_a_short_circuit_reaches_far_tasks_of_its_own_index():
    run = start(step("stop", 2), step("b", 2, "stop"), step("c", 2, "b", trigger_rule="all_done"))
    run.succeed("stop[0]", skipped=("b", "c"))
    assert (run.state("c[0]"), run.state("c[1]")) == ("skipped", "none")


def test_clearing_one_instance_runs_that_index_again():
    run = chain_of_two()
    run.succeed("a[0]", "a[1]", "b[0]", "b[1]", "after")
    run.clear("a[1]", "b[1]", "after")
    assert (run.state("a[1]"), run.state("b[1]"), run.state("b[0]")) == ("scheduled", "none", "success")
    run.succeed("a[1]", "b[1]", "after")
    assert run.attempt.state == "success"


def test_a_source_that_shrinks_and_grows_takes_all_of_them_along():
    run = chain_of_two()
    run.succeed("a[0]", "a[1]", "b[0]", "b[1]", "after")
    run.clear("s", "a", "b", "after")
    run.succeed("s", length=1)
    run.succeed("a[0]", "b[0]", "after")
    assert (run.state("a[1]"), run.state("b[1]"), run.attempt.state) == ("removed", "removed", "success")
    run.clear("s", "a", "b", "after")
    run.succeed("s", length=3)
    run.succeed("a[2]", "a[1]")
    assert [run.state(f"b[{i}]") for i in range(3)] == ["none", "scheduled", "scheduled"]


def test_a_task_that_was_cleared_without_the_first_of_them_still_learns_the_new_length():
    run = chain_of_two()
    run.succeed("a[0]", "a[1]", "b[0]", "b[1]", "after")
    run.clear("s", "b")
    assert run.state("b") == "none"
    run.succeed("s", length=2)
    assert (run.state("b[0]"), run.state("b[1]")) == ("scheduled", "scheduled")


def test_a_setup_and_its_teardown_meet_index_by_index():
    teardown = step("teardown", 2, "setup", "work", setups=("setup",), trigger_rule="all_done_setup_success")
    run = start(step("setup", 2), step("work", 2, "setup"), teardown)
    run.succeed("setup[0]", "setup[1]")
    run.fail("work[0]")
    assert (run.state("teardown[0]"), run.state("teardown[1]")) == ("scheduled", "none")


def test_mapping_over_a_task_in_lockstep_waits_for_all_of_it():
    run = start(step("a", 2), mapped("m", "a"))
    run.succeed("a[0]")
    assert run.state("m") == "none"
    run.succeed("a[1]")
    assert [one.name for one in run.claimable] == ["m[0]", "m[1]"]


def test_tasks_in_lockstep_must_have_one_length():
    nodes = (*dag(step("a", 2)).nodes, step("b", 3))
    with pytest.raises(DefinitionError, match=r"`a` and `b` .* lockstep `g`, so they must have the same length"):
        check_workflow(Workflow(name="w", language="python", nodes=nodes))


def test_those_behind_one_that_was_marked_are_told_when_the_source_is_marked_too():
    run = start(task("s"), step("a", "s"), later("b", "s", "a"), task("after", "b"))
    for name in ("a", "s"):
        run.do(lambda advance, name=name: advance.mark([run.task(name)], State.FAILED))
    assert (run.state("b"), run.attempt.state) == ("upstream_failed", "failed")
