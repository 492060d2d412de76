"""When a failed task or group is tried again, how long it waits, and what a new generation is made of."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from memory_graph import Engine, group, mapped, retry, start, start_tree, task, workflow

from headrace.definition import Length, Node
from headrace.handoff import TaskError, TaskResult
from headrace.state import Actor, has_try_left, retry_delay_seconds


def test_a_limit_of_two_retries_allows_three_tries():
    assert [has_try_left(try_number, 2) for try_number in (1, 2, 3)] == [True, True, False]
    assert not has_try_left(1, 0)


@pytest.mark.parametrize(("try_number", "expected"), [(1, 10), (2, 20), (3, 40), (4, 60), (5_000, 60)])
def test_exponential_waits_double_up_to_the_longest(try_number, expected):
    assert retry_delay_seconds(retry(9, 10, backoff=2, max_delay_seconds=60), try_number, "x") == expected


def test_constant_waits_stay_as_they_are():
    assert {retry_delay_seconds(retry(9, 0.25), n, "x") for n in range(1, 50)} == {0.25}


@given(st.floats(0, 1e6), st.floats(1, 1e9), st.integers(1, 10_000), st.text())
def test_jitter_spreads_a_wait_over_its_double_and_is_always_the_same(delay, backoff, try_number, seed):
    plain = retry_delay_seconds(retry(1, delay, backoff=backoff), try_number, seed)
    spread = retry_delay_seconds(retry(1, delay, backoff=backoff, jitter=True), try_number, seed)
    whole = max(1, -int(-plain // 1))
    assert whole <= spread < 2 * whole
    assert spread == retry_delay_seconds(retry(1, delay, backoff=backoff, jitter=True), try_number, seed)
    assert spread * 1_000_000 < 2**62


def test_jitter_differs_between_tasks_and_tries():
    waits = {retry_delay_seconds(retry(1, 1_000, jitter=True), n, seed) for n in (1, 2) for seed in ("a", "b")}
    assert len(waits) == 4


def test_a_failed_task_waits_and_is_scheduled_again():
    run = start(task("a", retry=retry(1, 30)))
    run.fail("a")
    assert run.story("a") == ["scheduled", "queued", "running", "up_for_retry"]
    run.advance(seconds=29)
    assert run.state("a") == "up_for_retry"
    run.advance(seconds=1)
    assert run.state("a") == "scheduled"
    assert run.task("a").try_number == 2
    run.fail("a")
    assert run.attempt.state == "failed"


def test_a_retry_without_a_wait_is_scheduled_at_once():
    run = start(task("a", retry=retry(1)))
    run.fail("a")
    assert run.story("a")[-2:] == ["up_for_retry", "scheduled"]


def test_a_failure_that_is_final_ignores_the_tries_that_are_left():
    run = start(task("a", retry=retry(5)))
    run.fail("a", is_retryable=False)
    assert run.state("a") == "failed"


def test_the_task_may_say_how_long_to_wait():
    run = start(task("a", retry=retry(1, 3_600)))
    run.fail("a", retry_after_seconds=2)
    run.advance(seconds=2)
    assert run.state("a") == "scheduled"


def test_being_called_again_keeps_the_try_and_what_the_operator_remembered():
    run = start(task("sensor"))
    run.end("sensor", "again", again_after_seconds=60, poll_state={"n": 1})
    assert run.state("sensor") == "up_for_reschedule"
    run.advance(seconds=60)
    assert (run.task("sensor").try_number, run.task("sensor").poll_state) == (1, '{"n":1}')


def test_a_new_try_forgets_what_the_operator_remembered():
    run = start(task("sensor", retry=retry(1)))
    run.end("sensor", "again", poll_state={"n": 1})
    run.fail("sensor")
    assert (run.task("sensor").try_number, run.task("sensor").poll_state) == (2, None)


def test_a_task_that_its_agent_hands_back_keeps_its_try():
    run = start(task("a"))
    run.claim("a")
    run.end("a", "stopped")
    assert (run.state("a"), run.task("a").try_number) == ("scheduled", 1)


def test_a_task_that_could_not_be_started_is_tried_again():
    run = start(task("a", retry=retry(1)))
    run.queue("a")
    run.fail("a")
    assert (run.state("a"), run.task("a").try_number) == ("scheduled", 2)


def test_a_task_that_is_over_its_time_limit_fails_with_a_sentence():
    run = start(task("a", timeout_seconds=90.0))
    run.claim("a")
    run.do(lambda advance: advance.expire(run.task("a")))
    assert run.state("a") == "failed"
    assert "took longer than 90 s" in (run.task("a").error or "")


# ---- groups --------------------------------------------------------------------------------------------------------


def test_a_group_is_tried_again_with_everything_in_it():
    run = start_tree(group("g", retry=retry(1, 10)), task("a", parent="g"), task("b", "a", parent="g"))
    run.succeed("a")
    run.fail("b")
    assert run.state("g") == "up_for_retry"
    run.advance(seconds=10)
    assert run.states() == {"g": "planned", "a": "scheduled", "b": "none"}
    run.succeed("a", "b")
    assert run.generations("a") == ["success", "success"]
    assert run.generations("b") == ["failed", "success"]
    assert run.attempt.state == "success"
    assert run.task("g").error is None


def test_a_group_fails_when_its_last_try_fails():
    run = start_tree(group("g", retry=retry(2)), task("a", parent="g"))
    run.fail("a", "a", "a")
    assert run.generations("a") == ["failed"] * 3
    assert run.attempt.state == "failed"


def test_a_group_in_a_group_has_all_its_tries_again_when_the_outer_one_is_tried_again():
    run = start_tree(group("g", retry=retry(1)), group("h", parent="g", retry=retry(1)), task("a", parent="h"))
    run.fail("a", "a", "a", "a")
    assert run.generations("h") == ["failed", "failed"]
    assert run.generations("a") == ["failed"] * 4
    assert run.attempt.state == "failed"


def test_what_a_task_grew_is_not_repeated_but_grown_again():
    grown = (Node(key="a^sub", operator="work"),)
    run = start_tree(group("g", retry=retry(1)), task("a", parent="g"))
    run.succeed("a", growth=grown)
    run.fail("a^sub")
    assert run.states() == {"g": "planned", "a": "scheduled"}
    run.succeed("a", growth=grown)
    run.succeed("a^sub")
    assert run.attempt.state == "success"


def test_a_group_that_was_grown_is_tried_again_with_what_was_grown_with_it():
    grown = (
        Node(key="a^sub", kind="group", retry=retry(1)),
        Node(key="a^sub+x", parent="a^sub", operator="work"),
        Node(key="a^sub+y", parent="a^sub", operator="work", upstream=("a^sub+x",)),
    )
    run = start_tree(task("a"))
    run.succeed("a", growth=grown)
    run.succeed("a^sub+x", growth=(Node(key="a^sub+x^sub", operator="work"),))
    run.succeed("a^sub+x^sub")
    run.fail("a^sub+y")
    assert run.states() == {"a": "planned", "a^sub": "planned", "a^sub+x": "scheduled", "a^sub+y": "none"}
    run.succeed("a^sub+x", "a^sub+y")
    assert run.attempt.state == "success"


def test_handlers_of_a_group_are_not_repeated_with_it():
    run = start_tree(
        group("g", retry=retry(1)),
        group("h", parent="g", on_failure=(Node(key="h^error", operator="work"),)),
        task("a", parent="h"),
    )
    run.fail("a")
    run.succeed("h^error")
    assert run.states() == {"g": "planned", "h": "planned", "a": "scheduled"}


def test_a_whole_workflow_may_be_tried_again():
    run = start_tree(task("a"), task("b", "a"), retry=retry(1))
    run.fail("a")
    run.succeed("a", "b")
    assert run.attempt.state == "success"


def test_a_new_generation_keeps_its_edges_with_tasks_outside_its_group():
    run = start_tree(
        task("before"),
        group("g", retry=retry(1)),
        task("a", "before", parent="g"),
        task("after", "a", "before", "last", trigger_rule="all_done"),
        task("last"),
    )
    run.succeed("before")
    run.fail("a")
    assert run.state("a") == "scheduled"
    run.succeed("last")
    assert run.state("after") == "none"
    run.succeed("a")
    assert run.state("after") == "scheduled"


def test_thousands_of_retries_without_a_wait_need_no_deep_stack():
    broken = Node(key="m", parent="g", kind="mapped", operator="work", expand=Length(op="result", task="gone"))
    run = Engine(workflow(group("g", retry=retry(2_000)), broken), is_checked=False)
    assert run.generations("m") == ["upstream_failed"] * 2_001
    assert run.attempt.state == "failed"


def test_a_lost_agent_costs_a_try():
    run = start(task("a", retry=retry(1, 5)))
    run.claim("a")
    lost = TaskError(type="LostLease", message="its agent is gone")
    run.do(lambda advance: advance.fail(run.task("a"), lost, Actor.RESCUER))
    assert run.state("a") == "up_for_retry"


def test_a_mapped_task_is_not_retried_as_a_whole():
    run = start(mapped("m", 1, retry=retry(1)))
    run.fail("m[0]", "m[0]")
    assert (run.task("m").try_number, run.task("m[0]").try_number) == (1, 2)
    assert run.attempt.state == "failed"


def test_a_task_may_end_in_the_transaction_in_which_a_group_begins_again():
    run = start_tree(
        task("x"),
        group("g", retry=retry(1, 10)),
        task("a", parent="g"),
        task("after", "a", "x", trigger_rule="all_done"),
    )
    claimed = run.claim("x")
    run.fail("a")

    def apply(advance):
        advance.complete(claimed, TaskResult(task_id=claimed.id, fence=claimed.fence, outcome="success"))
        advance.wake(run.task("g"))

    run.do(apply)
    assert run.states() == {"x": "success", "g": "planned", "a": "scheduled", "after": "none"}
