"""A task that waits for a trigger: it lets go of everything, and each wait ends once."""

from __future__ import annotations

import msgspec
import pytest
from memory_graph import retry, start, start_tree, task

from headrace.definition import Deferral, Node
from headrace.handoff import Resume, TaskError, TaskResult
from headrace.state import vetted

FOR_A_DAY = Deferral(trigger="a.Trigger", method="go_on", kwargs={"n": 1}, timeout_seconds=86_400)


def deferred(**node):
    run = start(task("wait", **node))
    run.end("wait", "deferred", deferral=FOR_A_DAY)
    return run


def resume_of(run) -> Resume:
    return msgspec.json.decode(run.task("wait").resume, type=Resume)


def test_a_try_that_waits_holds_nothing_and_goes_on_in_the_same_try():
    run = deferred()
    assert (run.state("wait"), run.task("wait").agent_id) == ("deferred", None)
    assert run.graph.triggers == [("wait", FOR_A_DAY)]
    run.fire("wait", event={"rows": 3})
    assert resume_of(run) == Resume(method="go_on", kwargs={"n": 1}, event={"rows": 3})
    run.succeed("wait")
    assert run.story("wait") == [
        "scheduled",
        "queued",
        "running",
        "deferred",
        "scheduled",
        "queued",
        "running",
        "success",
    ]
    assert run.task("wait").try_number == 1


def test_a_second_event_changes_nothing():
    run = deferred()
    run.fire("wait", event=1)
    run.fire("wait", event=2)
    assert (run.state("wait"), resume_of(run).event) == ("scheduled", 1)


def test_a_trigger_that_failed_is_told_to_the_task():
    run = deferred()
    error = TaskError(type="TaskDeferralError", message="the trigger ended without an event")
    run.fire("wait", error=error)
    assert (run.state("wait"), resume_of(run).error) == ("scheduled", error)


def test_a_wait_that_takes_too_long_is_told_to_the_task():
    run = deferred()
    run.advance(seconds=86_399)
    assert run.state("wait") == "deferred"
    run.advance(seconds=1)
    assert (run.state("wait"), resume_of(run).error.type) == ("scheduled", "TaskDeferralTimeout")


def test_the_time_limit_of_a_try_counts_its_waits():
    run = start(task("wait", timeout_seconds=100.0))
    run.claim("wait")
    run.advance(seconds=60)
    run.end("wait", "deferred", deferral=FOR_A_DAY)
    run.advance(seconds=39)
    assert run.state("wait") == "deferred"
    run.advance(seconds=1)
    assert run.state("wait") == "scheduled"


def test_a_wait_without_any_limit_has_no_due_time():
    run = start(task("wait"))
    run.end("wait", "deferred", deferral=Deferral(trigger="a.Trigger"))
    assert run.task("wait").due_at is None


def test_a_retry_begins_from_the_start():
    run = deferred(retry=retry(1))
    run.fire("wait", event=1)
    run.fail("wait")
    assert (run.state("wait"), run.task("wait").resume, run.task("wait").try_number) == ("scheduled", None, 2)


def test_being_called_again_begins_from_the_start():
    run = deferred()
    run.fire("wait", event=1)
    run.end("wait", "again", again_after_seconds=5)
    run.advance(seconds=5)
    assert (run.state("wait"), run.task("wait").resume) == ("scheduled", None)


def test_a_try_that_is_handed_back_goes_on_where_it_was():
    run = deferred()
    run.fire("wait", event=1)
    began = run.claim("wait").started_at
    run.end("wait", "stopped")
    assert (run.state("wait"), resume_of(run).event, run.task("wait").started_at) == ("scheduled", 1, began)


@pytest.mark.parametrize("outcome", ["success", "skipped", "failed"])
def test_a_trigger_may_end_its_task(outcome):
    run = deferred()
    run.fire("wait", outcome=outcome)
    assert (run.state("wait"), run.attempt.state) == (outcome, "failed" if outcome == "failed" else "success")


def test_a_task_that_its_trigger_lets_fail_is_tried_again():
    run = deferred(retry=retry(1, 30))
    run.fire("wait", outcome="failed")
    assert run.state("wait") == "up_for_retry"
    run.advance(seconds=30)
    assert run.state("wait") == "scheduled"


def test_a_task_that_its_trigger_lets_fail_runs_its_handlers():
    handler = Node(key="wait^error", operator="work")
    run = start_tree(task("wait", on_failure=(handler,)))
    run.end("wait", "deferred", deferral=FOR_A_DAY)
    run.fire("wait", outcome="failed", error=TaskError(type="E", message="no"))
    assert run.states() == {"wait": "planned", "wait^error": "scheduled"}


def test_a_task_with_callbacks_sees_its_end_in_a_process():
    run = start(task("wait"))
    run.end("wait", "deferred", deferral=Deferral(trigger="a.Trigger", ends_in_process=True))
    run.fire("wait", outcome="success")
    assert (run.state("wait"), resume_of(run).outcome) == ("scheduled", "success")


def test_a_task_may_begin_by_waiting():
    run = start(task("first"), task("wait", "first", deferral=FOR_A_DAY))
    run.succeed("first")
    assert (run.state("wait"), run.task("wait").try_number) == ("deferred", 1)
    assert run.task("wait").started_at == run.graph.now
    run.fire("wait", event=1)
    run.succeed("wait")
    assert run.story("wait") == ["deferred", "scheduled", "queued", "running", "success"]


def test_every_try_of_such_a_task_begins_by_waiting():
    run = start(task("wait", deferral=FOR_A_DAY, retry=retry(1, 30)))
    run.fire("wait", event=1)
    run.fail("wait")
    run.advance(seconds=30)
    assert (run.state("wait"), run.task("wait").try_number, len(run.graph.triggers)) == ("deferred", 2, 2)


def test_a_deferred_task_can_be_cleared_and_cancelled():
    run = deferred()
    run.clear("wait")
    assert (run.state("wait"), run.task("wait").resume) == ("scheduled", None)
    run.end("wait", "deferred", deferral=FOR_A_DAY)
    run.cancel()
    assert (run.state("wait"), run.attempt.state) == ("canceled", "canceled")


def test_an_event_that_comes_after_the_cancelling_changes_nothing():
    run = deferred()
    run.cancel()
    run.fire("wait", event=1)
    assert run.state("wait") == "canceled"


def test_a_result_that_waits_for_nothing_is_a_failure():
    run = start(task("wait"))
    claimed = run.claim("wait")
    result = vetted(run.graph, claimed, TaskResult(task_id=claimed.id, fence=claimed.fence, outcome="deferred"))
    assert (result.outcome, result.is_retryable) == ("failed", False)
    assert "does not say for which" in result.error.message


def test_waiting_keeps_the_run_going():
    run = start(task("wait"), task("after", "wait"))
    run.end("wait", "deferred", deferral=Deferral(trigger="a.Trigger"))
    assert run.attempt.state == "running"
    assert run.states() == {"wait": "deferred", "after": "none"}
