"""Cancelling, timing out, dead ends, and reports that come too late."""

from __future__ import annotations

import pytest
from memory_graph import Engine, group, mapped, retry, start, start_tree, task, workflow

from headrace.errors import IllegalMoveError
from headrace.state import FINISHED, Actor, Advance, State, accepts, check_move


def test_cancelling_ends_what_does_not_run_and_waits_for_what_does():
    run = start(task("a"), task("b"), task("c", "a"))
    run.claim("a")
    run.cancel()
    assert run.states() == {"a": "running", "b": "canceled", "c": "canceled"}
    assert run.attempt.state == "running"


@pytest.mark.parametrize("outcome", ["success", "failed", "skipped", "again", "stopped"])
def test_a_running_task_of_a_cancelled_run_ends_as_canceled_however_its_try_ends(outcome):
    run = start(task("a", retry=retry(3)))
    run.claim("a")
    run.cancel()
    run.end("a", outcome, **({"again_after_seconds": 60} if outcome == "again" else {}))
    assert (run.state("a"), run.attempt.state) == ("canceled", "canceled")


def test_groups_that_are_open_or_not_are_cancelled_with_what_is_in_them():
    run = start_tree(
        group("g"),
        task("a", parent="g"),
        group("h", "g"),
        group("i", parent="h"),
        task("b", parent="i"),
        mapped("m", 2),
    )
    run.claim("a")
    run.claim("m[1]")
    run.cancel()
    assert run.states() == {
        "g": "planned", "a": "running", "h": "canceled", "i": "canceled", "b": "canceled", "m": "planned",
        "m[0]": "canceled", "m[1]": "running",
    }  # fmt: skip
    run.succeed("a", "m[1]")
    assert set(run.states().values()) == {"canceled"}
    assert run.attempt.state == "canceled"


def test_what_waits_for_its_time_is_cancelled_at_once():
    run = start(task("a", retry=retry(1, 60)), task("b"))
    run.fail("a")
    run.end("b", "again", again_after_seconds=60)
    run.cancel()
    assert run.attempt.state == "canceled"


def test_a_cancelled_run_runs_no_handlers():
    run = start_tree(task("a", on_failure=(task("a^error", parent=None),)))
    run.claim("a")
    run.cancel()
    run.fail("a")
    assert run.states() == {"a": "canceled"}


def test_a_run_may_be_cancelled_before_it_starts():
    run = Engine(workflow(group("g"), task("a", parent="g")), is_started=False)
    run.cancel()
    assert (run.attempt.state, run.state("a")) == ("canceled", "canceled")


@pytest.mark.parametrize("become", [State.SKIPPED, State.CANCELED])
def test_a_run_that_takes_too_long_fails_and_everything_ends_with_it(become):
    run = start_tree(
        group("g"),
        group("h", parent="g"),
        task("a", parent="h"),
        task("b", "g"),
        group("i", "g"),
        task("c", parent="i"),
        task("d", retry=retry(1, 60)),
        mapped("m", 2),
    )
    run.claim("a")
    run.fail("d")
    run.succeed("m[0]")
    run.time_out(become)
    assert (run.attempt.state, run.attempt.reason) == ("failed", "timed_out")
    assert run.states().pop("m[0]") == "success"
    assert {state for name, state in run.states().items() if name != "m[0]"} == {become}


def test_a_run_that_timed_out_may_be_cleared():
    run = start_tree(group("g"), task("a", parent="g"), task("b", "a", parent="g"))
    run.claim("a")
    run.time_out()
    run.clear("a", "b")
    assert (run.attempt.state, run.attempt.reason) == ("running", None)
    assert run.states() == {"g": "planned", "a": "scheduled", "b": "none"}


def test_a_dead_end_fails_the_run_and_leaves_the_tasks_as_they_are():
    run = start(task("a"), task("b", "a"))
    run.do(lambda advance: advance.fail_deadlocked(run.attempt))
    assert (run.attempt.state, run.attempt.reason) == ("failed", "deadlocked")
    assert run.states() == {"a": "scheduled", "b": "none"}


def test_a_report_counts_only_for_the_claim_that_it_is_about():
    run = start(task("a", retry=retry(1)))
    run.claim("a")
    first = run.task("a").fence
    run.fail("a")
    run.claim("a")
    assert not accepts(run.task("a"), first)
    assert accepts(run.task("a"), run.task("a").fence)


def test_a_report_about_a_task_that_nobody_holds_does_not_count():
    run = start(task("a"))
    run.claim("a")
    run.time_out()
    assert not accepts(run.task("a"), run.task("a").fence)


def test_a_report_counts_while_the_task_is_being_restarted():
    run = start(task("a"))
    run.claim("a")
    run.clear("a")
    assert accepts(run.task("a"), run.task("a").fence)


def test_a_wake_up_that_comes_too_late_changes_nothing():
    run = start(task("a"))
    run.do(lambda advance: advance.wake(run.task("a")))
    assert run.story("a") == ["scheduled"]


def test_an_illegal_move_says_which_task_and_which_states():
    run = start(task("a"))
    run.succeed("a")
    with pytest.raises(IllegalMoveError, match=r"task `a` \(id 2\) cannot go from `success` to `running`"):
        check_move(run.task("a"), State.RUNNING, Actor.AGENT)


def test_a_move_by_the_wrong_one_says_who_may_make_it():
    run = start(task("a"))
    with pytest.raises(IllegalMoveError, match="`timer` may not move it from `scheduled` to `queued`, only `claim`"):
        check_move(run.task("a"), State.QUEUED, Actor.TIMER)


def test_what_has_ended_ends_no_second_time():
    run = start(task("a"))
    run.succeed("a")
    for late in ("hand_back", "fail"):
        arguments = (Actor.AGENT,) if late == "hand_back" else (None, Actor.AGENT)
        with pytest.raises(IllegalMoveError):
            getattr(Advance(run.graph), late)(run.task("a"), *arguments)
    assert run.task("a").state in FINISHED


def test_a_workflow_of_nothing_but_groups_ends():
    nest = [group("g"), group("h", "g"), group("i", parent="h")]
    assert Engine(workflow(*nest)).attempt.state == "success"
