"""Mapped tasks: how many instances, how they count for others, and what a clear does to them."""

from __future__ import annotations

import pytest
from memory_graph import Engine, group, mapped, retry, start, start_tree, task, workflow

from headrace.definition import Length, Node
from headrace.state import MapSource, State, instance_count


def lengths(**by_key: int | None) -> dict[str, MapSource]:
    return {key: MapSource(State.SUCCESS, length) for key, length in by_key.items()}


def over(key: str) -> Length:
    return Length(op="result", task=key)


@pytest.mark.parametrize(("op", "expected"), [("product", 6), ("concat", 5), ("zip_shortest", 2), ("zip_longest", 3)])
def test_length_of_combined_sources(op, expected):
    length = Length(op=op, parts=(over("a"), Length(op="literal", length=3)))
    assert instance_count(length, lengths(a=2)) == expected


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        ("failed", "upstream_failed"),
        ("upstream_failed", "upstream_failed"),
        ("canceled", "upstream_failed"),
        ("skipped", "skipped"),
        ("running", "none"),
    ],
)
def test_a_source_that_did_not_succeed_decides_for_the_mapped_task(state, expected):
    assert instance_count(over("a"), {"a": MapSource(State(state), None)}) == expected


def test_a_source_without_a_length_or_without_a_task_cannot_be_mapped_over():
    assert instance_count(over("a"), lengths(a=None)) is State.UPSTREAM_FAILED
    assert instance_count(over("a"), {}) is State.UPSTREAM_FAILED


def test_a_mapped_task_gets_an_instance_for_each_element():
    run = start(task("a"), mapped("m", "a"), task("b", "m"))
    run.succeed("a", length=2)
    assert run.states() == {"a": "success", "m": "planned", "b": "none", "m[0]": "scheduled", "m[1]": "scheduled"}
    run.succeed("m[1]")
    assert run.state("b") == "none"
    run.succeed("m[0]")
    assert (run.state("m"), run.state("b")) == ("success", "scheduled")


def test_a_literal_is_expanded_as_soon_as_the_task_opens():
    run = start(mapped("m", 3))
    assert [run.state(f"m[{i}]") for i in range(3)] == ["scheduled"] * 3


def test_nothing_to_map_over_is_a_skip_that_passes_on():
    run = start(task("a"), mapped("m", "a"), task("b", "m"))
    run.succeed("a", length=0)
    assert run.states() == {"a": "success", "m": "skipped", "b": "skipped"}
    assert run.attempt.state == "success"


def test_a_failed_source_beats_the_mapped_tasks_own_rule():
    run = start(task("a"), mapped("m", "a", trigger_rule="all_done"))
    run.fail("a")
    assert run.state("m") == "upstream_failed"
    assert run.attempt.state == "failed"


def test_a_mapped_task_whose_rule_holds_early_still_waits_for_its_source():
    run = start(task("a"), task("b"), mapped("m", "a", "b", trigger_rule="one_success"))
    run.succeed("b")
    assert run.state("m") == "none"
    run.succeed("a", length=1)
    assert run.state("m[0]") == "scheduled"


def test_a_failed_instance_fails_what_waits_for_all_but_not_its_siblings():
    run = start(mapped("m", 2), task("b", "m"))
    run.fail("m[0]")
    assert (run.state("b"), run.state("m[1]"), run.state("m")) == ("upstream_failed", "scheduled", "planned")
    run.succeed("m[1]")
    assert run.state("m") == "failed"


def test_one_success_counts_instances():
    run = start(mapped("m", 2), task("b", "m", trigger_rule="one_success"))
    run.fail("m[0]")
    assert run.state("b") == "none"
    run.succeed("m[1]")
    assert run.state("b") == "scheduled"


def test_a_mapped_task_whose_instances_were_all_skipped_is_skipped():
    run = start(mapped("m", 2), task("b", "m"))
    run.skip("m[0]", "m[1]")
    assert (run.state("m"), run.state("b")) == ("skipped", "skipped")


def test_instances_are_retried_one_by_one():
    run = start(mapped("m", 2, retry=retry(1, 30)))
    run.fail("m[0]")
    run.succeed("m[1]")
    assert (run.state("m[0]"), run.state("m[1]")) == ("up_for_retry", "success")
    run.advance(seconds=30)
    run.fail("m[0]")
    assert run.attempt.state == "failed"


def test_instances_without_code_to_run_go_through_the_queue_all_the_same():
    node = Node(key="m", parent="", kind="mapped", expand=Length(op="literal", length=2))
    assert Engine(workflow(node)).state("m[1]") == "scheduled"


def test_mapping_over_a_mapped_task_counts_its_instances():
    run = start(mapped("m", 3), mapped("n", "m"))
    run.succeed("m[0]", "m[2]", "m[1]")
    assert [one.name for one in run.claimable] == ["n[0]", "n[1]", "n[2]"]


def test_a_mapped_setup_counts_each_of_its_instances():
    run = start(
        mapped("setup", 2),
        task("teardown", "setup", setups=("setup",), trigger_rule="all_done_setup_success"),
    )
    run.skip("setup[0]", "setup[1]")
    assert run.state("teardown") == "skipped"


def test_a_mapped_task_in_a_group_that_is_tried_again_is_mapped_again():
    run = start_tree(group("g", retry=retry(1)), task("a", parent="g"), mapped("m", "a", parent="g"))
    run.succeed("a", length=2)
    run.fail("m[0]")
    run.succeed("m[1]")
    assert run.states() == {"g": "planned", "a": "scheduled", "m": "none"}
    run.succeed("a", length=1)
    run.succeed("m[0]")
    assert run.attempt.state == "success"


# ---- clearing ------------------------------------------------------------------------------------------------------


def mapped_over_three():
    run = start(task("a"), mapped("m", "a", retry=retry(1, 5)), task("b", "m"))
    run.succeed("a", length=3)
    run.succeed("m[0]", "m[1]", "m[2]", "b")
    return run


def test_clearing_one_instance_runs_only_that_one():
    run = mapped_over_three()
    run.clear("m[1]", "b")
    assert run.states() == {
        "a": "success", "m": "planned", "b": "none", "m[0]": "success", "m[1]": "scheduled", "m[2]": "success",
    }  # fmt: skip
    run.succeed("m[1]", "b")
    assert run.attempt.state == "success"
    assert (run.task("m[1]").try_number, run.task("m[1]").max_tries) == (2, 2)


def test_clearing_a_mapped_task_clears_its_instances():
    run = mapped_over_three()
    run.clear("m", "b")
    assert [run.state(f"m[{i}]") for i in range(3)] == ["scheduled"] * 3
    assert run.state("b") == "none"


def test_surplus_instances_are_removed_when_the_source_shrinks():
    run = mapped_over_three()
    run.clear("a", "m", "b")
    assert run.state("m[2]") == "none"
    run.succeed("a", length=1)
    assert [run.state(f"m[{i}]") for i in range(3)] == ["scheduled", "removed", "removed"]
    run.succeed("m[0]", "b")
    assert run.attempt.state == "success"
    assert run.story("m[2]")[-2:] == ["none", "removed"]


def test_removed_instances_come_back_when_the_source_grows_again():
    run = mapped_over_three()
    run.clear("a", "m", "b")
    run.succeed("a", length=1)
    run.succeed("m[0]", "b")
    run.clear("a", "m", "b")
    run.succeed("a", length=4)
    assert [run.state(f"m[{i}]") for i in range(4)] == ["scheduled"] * 4
    assert run.task("b").expected == 4
    assert (run.task("m[2]").try_number, run.task("m[2]").max_tries) == (2, 2)


def test_a_mapping_that_became_empty_removes_every_instance_and_skips():
    run = mapped_over_three()
    run.clear("a", "m", "b")
    run.succeed("a", length=0)
    assert run.states() == {
        "a": "success", "m": "skipped", "b": "skipped", "m[0]": "removed", "m[1]": "removed", "m[2]": "removed",
    }  # fmt: skip


def test_instances_of_a_cleared_mapped_task_share_its_fate_when_its_source_fails():
    run = mapped_over_three()
    run.clear("a", "m", "b")
    run.fail("a")
    assert {run.state(name) for name in ("m", "m[0]", "m[1]", "m[2]", "b")} == {"upstream_failed"}
    assert run.attempt.state == "failed"


def test_a_running_instance_of_a_cleared_mapped_task_is_stopped_before_it_runs_again():
    run = start(mapped("m", 2))
    run.claim("m[0]")
    run.clear("m")
    assert (run.state("m[0]"), run.state("m[1]")) == ("restarting", "scheduled")
    run.end("m[0]", "stopped")
    assert run.state("m[0]") == "scheduled"


def test_a_running_instance_that_the_mapping_no_longer_has_is_removed():
    run = mapped_over_three()
    run.clear("m[2]", "b")
    run.claim("m[2]")
    run.clear("a", "m")
    run.succeed("a", length=1)
    assert run.state("m[2]") == "removed"


def test_a_removed_instance_cannot_be_cleared():
    run = mapped_over_three()
    run.clear("a", "m", "b")
    run.succeed("a", length=1)
    run.clear("m[2]")
    assert run.state("m[2]") == "removed"


def test_instances_that_keep_their_end_close_the_mapped_task_again():
    run = mapped_over_three()
    run.clear("a", "m", "b")
    run.fail("a")
    run.clear("a", "m[2]")
    assert (run.state("m"), run.state("m[2]"), run.state("m[1]")) == ("none", "none", "upstream_failed")
    run.succeed("a", length=2)
    assert (run.state("m"), run.state("m[2]"), run.attempt.state) == ("failed", "removed", "failed")


def test_removed_instances_do_not_outlive_their_generation():
    run = start_tree(
        group("g", retry=retry(1)), task("a", parent="g"), mapped("m", "a", parent="g"), task("b", parent="g")
    )
    run.succeed("a", length=1)
    run.succeed("m[0]")
    run.clear("a", "m")
    run.succeed("a", length=0)
    run.fail("b")
    assert run.states() == {"g": "planned", "a": "scheduled", "m": "none", "b": "scheduled"}
