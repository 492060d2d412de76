"""Tasks that are added while an attempt runs: subtasks, checks and the handlers of a failure."""

from __future__ import annotations

from memory_graph import group, mapped, retry, start, start_tree, task

from headrace.definition import Node


def sub(key: str, *upstream: str, parent: str | None = None, **fields) -> Node:
    return Node(**{"key": key, "parent": parent, "upstream": upstream, "operator": "work", **fields})


LOOP = (sub("loop^sub", kind="group"), sub("loop^sub+0", parent="loop^sub"), sub("loop^sub+1", parent="loop^sub"))
CHECK = sub("loop^check", "loop^sub")


def test_a_task_that_grew_others_ends_after_them():
    run = start_tree(task("loop"), task("after", "loop"))
    run.succeed("loop", growth=(*LOOP, CHECK))
    assert run.states() == {
        "loop": "planned", "after": "none", "loop^sub": "planned", "loop^sub+0": "scheduled",
        "loop^sub+1": "scheduled", "loop^check": "none",
    }  # fmt: skip
    run.succeed("loop^sub+0", "loop^sub+1")
    assert (run.state("loop"), run.state("loop^check")) == ("planned", "scheduled")
    run.succeed("loop^check")
    assert (run.state("loop"), run.state("after")) == ("success", "scheduled")


def test_a_failing_check_fails_its_task():
    run = start_tree(task("loop"), task("after", "loop"))
    run.succeed("loop", growth=(sub("loop^check"),))
    run.fail("loop^check")
    assert run.states() == {"loop": "failed", "after": "upstream_failed", "loop^check": "failed"}


def test_growth_may_grow_again():
    run = start_tree(task("loop"))
    run.succeed("loop", growth=(sub("loop^sub"),))
    run.succeed("loop^sub", growth=(sub("loop^sub^sub"),))
    run.succeed("loop^sub^sub")
    assert run.attempt.state == "success"


def test_a_task_whose_subtasks_fail_is_tried_again_from_its_own_beginning():
    run = start_tree(task("loop", retry=retry(1, 10)))
    run.succeed("loop", growth=LOOP)
    run.fail("loop^sub+0")
    run.succeed("loop^sub+1")
    assert run.state("loop") == "up_for_retry"
    run.advance(seconds=10)
    assert run.states() == {"loop": "scheduled"}
    run.succeed("loop", growth=LOOP)
    run.succeed("loop^sub+0", "loop^sub+1")
    assert run.generations("loop^sub+0") == ["failed", "success"]
    assert run.attempt.state == "success"


# ---- handlers ------------------------------------------------------------------------------------------------------

TELL = (sub("a^error", kind="group"), sub("a^error+x", parent="a^error"), sub("a^error+y", parent="a^error"))


def test_a_task_ends_as_failed_after_its_handlers_ran():
    run = start_tree(task("a", on_failure=TELL), task("b", "a"))
    run.fail("a", message="no disk")
    assert run.state("a") == "planned"
    assert run.state("b") == "none"
    run.succeed("a^error+x", "a^error+y")
    assert (run.state("a"), run.state("b"), run.attempt.state) == ("failed", "upstream_failed", "failed")


def test_a_handler_sees_the_error_that_it_is_for():
    run = start_tree(task("a", on_failure=TELL))
    run.fail("a", message="no disk")
    assert run.graph.node(run.task("a^error")).export["error"]["message"] == "no disk"


def test_a_handler_of_a_group_sees_the_error_of_its_child():
    run = start_tree(group("g", on_failure=(sub("g^error"),)), task("a", parent="g"))
    run.fail("a", message="no disk")
    assert run.graph.node(run.task("g^error")).export["error"]["message"] == "no disk"


def test_handlers_run_only_after_the_last_try():
    run = start_tree(task("a", on_failure=TELL, retry=retry(1)))
    run.fail("a")
    assert run.states() == {"a": "scheduled"}
    run.fail("a")
    assert run.state("a^error+x") == "scheduled"


def test_a_failing_handler_changes_neither_the_result_nor_the_error():
    run = start_tree(task("a", on_failure=(sub("a^error", on_failure=(sub("a^error^error"),)),)))
    run.fail("a", message="no disk")
    run.fail("a^error", message="no mail")
    run.succeed("a^error^error")
    assert run.states() == {"a": "failed", "a^error": "failed", "a^error^error": "success"}
    assert "no disk" in (run.task("a").error or "")


def test_the_inner_handler_runs_before_the_outer_one():
    run = start_tree(group("g", on_failure=(sub("g^error"),)), task("a", parent="g", on_failure=(sub("a^error"),)))
    run.fail("a")
    assert run.states() == {"g": "planned", "a": "planned", "a^error": "scheduled"}
    run.succeed("a^error")
    assert run.states() == {"g": "planned", "a": "failed", "a^error": "success", "g^error": "scheduled"}
    run.succeed("g^error")
    assert run.attempt.state == "failed"


def test_the_root_has_handlers_too():
    run = start_tree(task("a"), on_failure=(sub("^failure-alert"),))
    run.fail("a")
    assert run.attempt.state == "running"
    run.succeed("^failure-alert")
    assert run.attempt.state == "failed"


def test_a_group_fails_as_in_the_books():
    """`+g: {_error: E, +a: fails, +b}`: b never runs, E runs, then g fails, then what follows g is given up."""
    run = start_tree(
        group("+g", on_failure=(sub("+g^error"),)),
        task("+g+a", parent="+g"),
        task("+g+b", "+g+a", parent="+g"),
        task("+h", "+g"),
        on_failure=(sub("^failure-alert"),),
    )
    run.fail("+g+a")
    assert run.states() == {
        "+g": "planned", "+g+a": "failed", "+g+b": "upstream_failed", "+h": "none", "+g^error": "scheduled",
    }  # fmt: skip
    run.succeed("+g^error")
    assert (run.state("+g"), run.state("+h"), run.state("^failure-alert")) == ("failed", "upstream_failed", "scheduled")
    run.succeed("^failure-alert")
    assert run.attempt.state == "failed"


def test_every_failed_instance_of_a_mapped_task_has_handlers_of_its_own():
    run = start(mapped("m", 3, on_failure=(sub("m^error"),)))
    run.fail("m[0]", "m[2]")
    run.succeed("m[1]")
    run.succeed("m^error[0]", "m^error[2]")
    assert (run.state("m[0]"), run.state("m[1]"), run.state("m[2]")) == ("failed", "success", "failed")
    assert run.attempt.state == "failed"


# ---- clearing what has grown ---------------------------------------------------------------------------------------


def test_clearing_a_task_forgets_what_it_grew():
    run = start_tree(task("loop"))
    run.succeed("loop", growth=LOOP)
    run.succeed("loop^sub+0", "loop^sub+1")
    run.clear("loop")
    assert run.states() == {"loop": "scheduled"}
    run.succeed("loop")
    assert run.attempt.state == "success"


def test_clearing_a_task_and_what_it_grew_is_the_same_as_clearing_the_task():
    run = start_tree(task("loop"))
    run.succeed("loop", growth=LOOP)
    run.succeed("loop^sub+0")
    run.clear("loop^sub+0", "loop^sub", "loop")
    assert run.states() == {"loop": "scheduled"}


def test_clearing_a_task_stops_what_it_grew():
    run = start_tree(task("loop"))
    run.succeed("loop", growth=LOOP)
    old = run.claim("loop^sub+0")
    run.clear("loop")
    assert (old.state, old.is_superseded) == ("canceled", True)


def test_clearing_a_subtask_reopens_the_task_that_grew_it():
    run = start_tree(task("loop"), task("after", "loop"))
    run.succeed("loop", growth=LOOP)
    run.fail("loop^sub+0")
    run.succeed("loop^sub+1")
    run.clear("loop^sub+0", "after")
    assert (run.state("loop"), run.state("loop^sub"), run.state("loop^sub+0")) == ("planned", "planned", "scheduled")
    run.succeed("loop^sub+0", "after")
    assert run.attempt.state == "success"


def test_a_task_that_failed_no_longer_fails_once_its_cause_is_cleared():
    run = start_tree(group("g", on_failure=(sub("g^error"),)), task("a", parent="g"))
    run.fail("a")
    run.succeed("g^error")
    run.clear("a")
    assert run.states() == {"g": "planned", "a": "scheduled"}
    run.succeed("a")
    assert run.attempt.state == "success"


def test_handlers_run_again_if_the_cleared_cause_fails_again():
    run = start_tree(group("g", on_failure=(sub("g^error"),)), task("a", parent="g"))
    run.fail("a")
    run.clear("a")
    run.fail("a")
    run.succeed("g^error")
    assert run.generations("g^error") == ["canceled", "success"]
    assert run.attempt.state == "failed"


def test_clearing_a_handler_runs_it_again_and_its_task_stays_failed():
    run = start_tree(task("a", on_failure=(sub("a^error"),)))
    run.fail("a", message="no disk")
    run.fail("a^error")
    run.clear("a^error")
    assert run.states() == {"a": "planned", "a^error": "scheduled"}
    run.succeed("a^error")
    assert run.states() == {"a": "failed", "a^error": "success"}
    assert "no disk" in (run.task("a").error or "")


def test_clearing_a_failed_subtask_forgets_the_handlers_and_keeps_the_other_subtasks():
    run = start_tree(task("loop", on_failure=(sub("loop^error"),)))
    run.succeed("loop", growth=LOOP)
    run.fail("loop^sub+0")
    run.succeed("loop^sub+1", "loop^error")
    run.clear("loop^sub+0")
    assert run.states() == {
        "loop": "planned", "loop^sub": "planned", "loop^sub+0": "scheduled", "loop^sub+1": "success",
    }  # fmt: skip
    run.succeed("loop^sub+0")
    assert run.attempt.state == "success"


def test_clearing_the_handler_of_a_task_that_could_not_be_started_does_not_run_the_task():
    run = start_tree(task("a", on_failure=(sub("a^error"),)))
    run.queue("a")
    run.fail("a")
    run.fail("a^error")
    run.clear("a^error")
    assert run.states() == {"a": "planned", "a^error": "scheduled"}
