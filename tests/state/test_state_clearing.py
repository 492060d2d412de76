"""Clearing: the same tasks of the same attempt get a new series of tries."""

from __future__ import annotations

import pytest
from memory_graph import group, mapped, retry, start, start_tree, task

from headrace.handoff import TaskError, TaskResult
from headrace.state import Actor


def test_a_cleared_task_runs_again_and_has_all_its_tries():
    run = start(task("a", retry=retry(2)))
    run.fail("a", "a", "a")
    run.clear("a")
    assert (run.state("a"), run.attempt.state) == ("scheduled", "running")
    assert (run.task("a").try_number, run.task("a").max_tries, run.task("a").error) == (4, 5, None)
    run.fail("a", "a", "a")
    assert run.attempt.state == "failed"
    assert run.task("a").try_number == 6


def test_what_follows_a_cleared_task_stays_unless_it_is_cleared_too():
    run = start(task("a"), task("b", "a"))
    run.succeed("a", "b")
    run.clear("a")
    assert run.states() == {"a": "scheduled", "b": "success"}
    run.succeed("a")
    assert run.attempt.state == "success"


def test_what_follows_waits_again_if_it_is_cleared_too():
    run = start(task("a"), task("b", "a"))
    run.fail("a")
    run.clear("a", "b")
    assert run.states() == {"a": "scheduled", "b": "none"}
    run.succeed("a", "b")
    assert run.attempt.state == "success"


def test_a_task_that_still_waits_forgets_how_a_cleared_one_had_ended():
    run = start(task("a"), task("b"), task("c", "a", "b", trigger_rule="all_done"))
    run.fail("a")
    run.clear("a")
    run.succeed("b")
    assert run.state("c") == "none"
    run.succeed("a")
    assert run.state("c") == "scheduled"


def test_clearing_a_task_whose_upstream_failed_finds_it_unchanged():
    run = start(task("a"), task("b", "a"))
    run.fail("a")
    run.clear("b")
    assert run.states() == {"a": "failed", "b": "upstream_failed"}
    assert run.attempt.state == "failed"


def test_a_running_task_is_stopped_before_it_runs_again():
    run = start(task("a"))
    run.claim("a")
    run.clear("a")
    assert run.state("a") == "restarting"
    run.end("a", "stopped")
    assert run.story("a") == ["scheduled", "queued", "running", "restarting", "none", "scheduled"]
    assert run.task("a").try_number == 2


@pytest.mark.parametrize("outcome", ["success", "failed", "skipped", "again"])
def test_however_a_cleared_try_ends_it_does_not_count(outcome):
    run = start(task("a"), task("b", "a"))
    run.claim("a")
    run.clear("a")
    run.end("a", outcome)
    assert run.states() == {"a": "scheduled", "b": "none"}
    assert run.task("a").error is None


def test_a_cleared_task_whose_agent_is_lost_runs_again():
    run = start(task("a"))
    run.claim("a")
    run.clear("a")
    lost = TaskError(type="LostLease", message="its agent is gone")
    run.do(lambda advance: advance.fail(run.task("a"), lost, Actor.RESCUER))
    assert run.state("a") == "scheduled"


def test_a_cleared_task_that_is_over_its_time_limit_runs_again():
    run = start(task("a", timeout_seconds=5.0))
    run.claim("a")
    run.clear("a")
    run.do(lambda advance: advance.expire(run.task("a")))
    assert run.state("a") == "scheduled"


def test_clearing_twice_is_clearing_once():
    run = start(task("a"))
    run.succeed("a")
    run.clear("a", "a")
    run.clear("a")
    run.succeed("a")
    assert run.attempt.state == "success"


def test_a_cleared_task_that_waits_for_its_retry_begins_at_once():
    run = start(task("a", retry=retry(1, 3_600)))
    run.fail("a")
    run.clear("a")
    assert (run.state("a"), run.task("a").due_at) == ("scheduled", None)


def test_clearing_a_child_reopens_the_groups_around_it():
    run = start_tree(group("g"), group("h", parent="g"), task("a", parent="h"), task("b", "g"))
    run.fail("a")
    run.clear("a", "b")
    assert run.states() == {"g": "planned", "h": "planned", "a": "scheduled", "b": "none"}
    run.succeed("a", "b")
    assert run.attempt.state == "success"


def test_whoever_waits_for_a_reopened_group_waits_again():
    run = start_tree(group("g"), task("a", parent="g"), task("b"), task("c", "g", "b", trigger_rule="all_done"))
    run.fail("a")
    run.clear("a")
    run.succeed("b")
    assert run.state("c") == "none"
    run.succeed("a")
    assert run.state("c") == "scheduled"


def test_clearing_a_group_clears_everything_in_it():
    run = start_tree(group("g"), group("h", parent="g"), task("a", parent="h"), task("b", "h", parent="g"))
    run.succeed("a", "b")
    run.clear("g")
    assert run.states() == {"g": "planned", "h": "planned", "a": "scheduled", "b": "none"}
    run.succeed("a", "b")
    assert (run.attempt.state, run.task("a").try_number) == ("success", 2)


def test_clearing_a_group_stops_what_runs_in_it():
    run = start_tree(task("before"), group("g", "before"), task("a", parent="g"), task("b", parent="g"))
    run.succeed("before")
    run.claim("a")
    run.clear("before", "g")
    assert run.states() == {"before": "scheduled", "g": "none", "a": "restarting", "b": "none"}
    run.end("a", "stopped")
    assert run.state("a") == "none"
    run.succeed("before")
    assert run.states() == {"before": "success", "g": "planned", "a": "scheduled", "b": "scheduled"}


def test_a_task_that_is_being_stopped_in_a_group_that_opens_no_more_is_canceled():
    run = start_tree(task("before"), group("g", "before"), task("a", parent="g"))
    run.succeed("before")
    run.claim("a")
    run.clear("before", "g")
    run.fail("before")
    assert run.states() == {"before": "failed", "g": "upstream_failed", "a": "canceled"}
    assert run.attempt.state == "failed"


def test_clearing_a_task_in_a_group_that_never_opened_decides_about_the_group_again():
    run = start_tree(task("before"), group("g", "before"), task("a", parent="g"))
    run.fail("before")
    run.clear("a")
    assert run.states() == {"before": "failed", "g": "upstream_failed", "a": "upstream_failed"}
    run.clear("before", "a")
    assert run.states() == {"before": "scheduled", "g": "none", "a": "none"}
    run.succeed("before", "a")
    assert run.attempt.state == "success"


def test_clearing_the_root_runs_everything_again():
    run = start_tree(task("a"), group("g", "a"), task("b", parent="g"))
    run.fail("a")
    run.clear("")
    assert run.states() == {"a": "scheduled", "g": "none", "b": "none"}
    run.succeed("a", "b")
    assert run.attempt.state == "success"


def test_clearing_a_canceled_run_takes_the_cancellation_back():
    run = start(task("a"), task("b", "a"))
    run.cancel()
    run.clear("a", "b")
    assert (run.state("a"), run.attempt.is_cancel_requested) == ("scheduled", False)
    run.succeed("a", "b")
    assert run.attempt.state == "success"


def test_what_is_cleared_while_its_run_is_being_cancelled_is_canceled():
    run = start(task("a"), task("b"))
    run.succeed("b")
    run.claim("a")
    run.cancel()
    run.clear("b", "a")
    assert run.state("b") == "canceled"
    run.end("a", "stopped")
    assert run.attempt.state == "canceled"


def test_a_task_may_end_and_be_cleared_in_one_transaction():
    run = start(task("a"), task("b", "a", trigger_rule="all_done"))
    claimed = run.claim("a")

    def apply(advance):
        advance.complete(claimed, TaskResult(task_id=claimed.id, fence=claimed.fence, outcome="failed"))
        advance.clear([claimed])

    run.do(apply)
    assert run.states() == {"a": "scheduled", "b": "none"}


def test_a_cleared_task_that_a_branch_decides_against_while_it_is_being_stopped_is_skipped():
    run = start(task("branch"), task("left", "branch"))
    run.succeed("branch", followed=("left",))
    run.claim("left")
    run.clear("branch", "left")
    run.succeed("branch", followed=())
    assert run.state("left") == "restarting"
    run.end("left", "stopped")
    assert run.states() == {"branch": "success", "left": "skipped"}


def test_a_group_that_waits_for_its_next_try_goes_on_if_something_in_it_is_cleared():
    run = start_tree(mapped("m", 2), retry=retry(1, 10))
    run.succeed("m[0]")
    run.fail("m[1]")
    assert run.root.state == "up_for_retry"
    run.clear("m[0]")
    run.claim("m[0]")
    assert (run.root.state, run.root.due_at) == ("planned", None)
    run.cancel()
    assert run.root.state == "planned"
    run.succeed("m[0]")
    assert run.attempt.state == "canceled"
