"""Runs and attempts: unique, queued, started within limits, cancelled, resumed."""

from __future__ import annotations

import pytest
from sqlalchemy import insert
from store_bench import flow, group, node

from headrace.errors import ConflictError, NotFoundError, StateError
from headrace.store import (
    NewRun,
    add_attempt,
    cancel_attempt,
    create_runs,
    latest_attempt,
    start_queued_runs_of,
    time_out_attempt,
)
from headrace.store.schema import attempt, run


def test_a_logical_time_has_one_run(bench):
    (workflow_id,) = bench.save(flow(node("a")))
    assert bench.create(workflow_id, "r1", logical_at=5) is not None
    assert bench.create(workflow_id, "r2", logical_at=5) is None
    assert bench.create(workflow_id, "r3", logical_at=6) is not None
    assert [row.key for row in bench.rows(run)] == ["r1", "r3"]
    assert len(bench.rows(attempt)) == 2


def test_a_key_names_one_run_of_a_workflow(bench):
    one, two = bench.save(flow(node("a"), name="one"), flow(node("a"), name="two"))
    assert bench.create(one, "r1") is not None
    assert bench.create(one, "r1") is None
    assert bench.create(two, "r1") is not None


def test_runs_without_logical_time_do_not_collide(bench):
    (workflow_id,) = bench.save(flow(node("a")))
    assert None not in (bench.create(workflow_id, "r1"), bench.create(workflow_id, "r2"))


def test_a_workflow_may_allow_several_runs_of_a_logical_time(bench):
    (workflow_id,) = bench.save(flow(node("a"), unique_logical_time=False))
    assert None not in (
        bench.create(workflow_id, "r1", logical_at=5),
        bench.create(workflow_id, "r2", logical_at=5),
    )


def test_a_refused_run_leaves_the_transaction_usable(bench):
    (workflow_id,) = bench.save(flow(node("a")))
    bench.create(workflow_id, "r1", logical_at=5)
    assert bench.create(workflow_id, "r1", logical_at=9) is None
    assert bench.create(workflow_id, "r2", logical_at=9) is not None


def test_of_runs_that_are_created_together_those_are_left_out_that_exist(bench):
    first, second = bench.save(flow(node("a"), name="first"), flow(node("a"), name="second"))
    bench.create(first, "there", logical_at=1)
    wanted = [
        NewRun(first, "same time", logical_at=1),
        NewRun(first, "new", logical_at=2),
        NewRun(second, "new", logical_at=2),
        NewRun(second, "new", logical_at=3),
    ]
    created = bench.store.transact(lambda tx: create_runs(tx, wanted, bench.now))
    assert [run_id is not None for run_id in created] == [False, True, True, False]
    attempts = bench.rows(attempt)
    assert [(one.run_id, one.workflow_id, one.number) for one in attempts[1:]] == [
        (created[1], first, 1),
        (created[2], second, 1),
    ]


def test_runs_of_many_workflows_start_within_the_limit_of_each(bench):
    limited, paused, free = bench.save(
        flow(node("a"), name="limited", max_active_runs=1),
        flow(node("a"), name="paused"),
        flow(node("a"), name="free"),
    )
    for workflow_id in (limited, paused, free):
        bench.create(workflow_id, "r1")
        bench.create(workflow_id, "r2")
    bench.pause(paused)
    bench.store.transact(lambda tx: start_queued_runs_of(tx, [free, paused, limited], bench.now))
    running = [(one.workflow_id, one.key) for one in bench.rows(run) if one.state == "running"]
    assert sorted(running) == sorted([(limited, "r1"), (free, "r1"), (free, "r2")])


def test_queued_runs_start_oldest_first_within_the_limit(bench):
    (workflow_id,) = bench.save(flow(node("a"), max_active_runs=2))
    for number, after in enumerate((3, 1, 2)):
        bench.create(workflow_id, f"r{number}", run_after=bench.now - 10 + after)
    bench.activate(workflow_id)
    assert {row.key: row.state for row in bench.rows(run)} == {"r0": "queued", "r1": "running", "r2": "running"}
    for claimed in bench.claim(bench.agent(), limit=1):
        bench.end(claimed)
    bench.activate(workflow_id)
    assert {row.key: row.state for row in bench.rows(run)} == {"r0": "running", "r1": "success", "r2": "running"}


def test_a_run_does_not_start_before_its_time(bench):
    (workflow_id,) = bench.save(flow(node("a")))
    bench.create(workflow_id, "r1", run_after=bench.now + 1)
    assert bench.activate(workflow_id) is None
    bench.now += 1
    assert bench.activate(workflow_id).scheduled == 1


def test_a_paused_workflow_starts_nothing(bench):
    (workflow_id,) = bench.save(flow(node("a")))
    bench.create(workflow_id, "r1")
    bench.pause(workflow_id)
    assert bench.activate(workflow_id) is None
    bench.pause(workflow_id, False)
    assert bench.activate(workflow_id).scheduled == 1


def test_a_run_of_nothing_but_empty_tasks_ends_as_it_starts(bench):
    attempt_id = bench.start(flow(node("a", operator="noop"), node("b", "a", operator="noop")))
    assert bench.states(attempt_id) == {"a": "success", "b": "success"}
    assert [row.state for row in bench.rows(run)] == ["success"]


def test_a_run_has_at_most_one_active_attempt(bench):
    (workflow_id,) = bench.save(flow(node("a")))
    run_id = bench.create(workflow_id)
    with pytest.raises(StateError, match="its attempt 1 has not ended yet"), bench.store.begin() as tx:
        add_attempt(tx, run_id, workflow_id, None, "", bench.now)
    assert [row.number for row in bench.rows(attempt)] == [1]


def test_the_database_itself_refuses_a_second_active_attempt(bench):
    attempt_id = bench.start(flow(node("a")))
    (row,) = bench.rows(attempt)
    copy = {**row._mapping, "number": 2}
    del copy["id"]
    with pytest.raises(ConflictError, match=r"(?i)unique"), bench.store.begin() as tx:
        tx.execute(insert(attempt).values(copy))
    assert [row.id for row in bench.rows(attempt)] == [attempt_id]


def test_a_second_attempt_may_resume_what_the_first_one_finished(bench):
    first = bench.start(flow(node("a"), node("b", "a"), node("c", "b")))
    agent_id = bench.agent()
    (a,) = bench.claim(agent_id)
    bench.end(a, values={"return_value": b"[1, 2]"}, lengths={"return_value": 2}, store={"x": 1})
    (b,) = bench.claim(agent_id)
    bench.end(b, "failed")
    second = retry(bench, first, resumes=first)
    assert bench.states(second) == {"a": "success", "b": "scheduled", "c": "none"}
    resumed = bench.tasks(second)["a"]
    assert bench.values(resumed.id) == {"return_value": "[1, 2]", "": '{"store":{"x":1},"reset":[]}'}
    assert (resumed.try_number, resumed.fence) == (1, 0)
    assert [row.number for row in bench.rows(attempt)] == [1, 2]


def test_a_resumed_task_leaves_its_parameters_to_those_that_come_after(bench):
    first = bench.start(flow(node("a"), node("b", "a")))
    agent_id = bench.agent()
    bench.end(bench.claim(agent_id)[0], store={"x": 1})
    bench.end(bench.claim(agent_id)[0], "failed")
    retry(bench, first, resumes=first)
    assert bench.claim_requests(agent_id)["b"].params == {"x": 1}


def test_a_second_attempt_without_resuming_begins_anew(bench):
    first = bench.start(flow(node("a"), node("b", "a")))
    agent_id = bench.agent()
    bench.end(bench.claim(agent_id)[0])
    bench.end(bench.claim(agent_id)[0], "failed")
    second = retry(bench, first, resumes=None)
    assert bench.states(second) == {"a": "scheduled", "b": "none"}


def test_a_resumed_group_is_not_opened_again(bench):
    first = bench.start(flow(group("g"), node("g.a", parent="g"), node("b", "g")))
    agent_id = bench.agent()
    bench.end(bench.claim(agent_id)[0])
    bench.end(bench.claim(agent_id)[0], "failed")
    second = retry(bench, first, resumes=first)
    assert bench.states(second) == {"g": "success", "g.a": "success", "b": "scheduled"}


def retry(bench, attempt_id: int, resumes: int | None) -> int:
    (row,) = bench.rows(attempt, attempt.c.id == attempt_id)
    with bench.store.begin() as tx:
        add_attempt(tx, row.run_id, row.workflow_id, resumes, "again", bench.now)
    bench.activate(row.workflow_id)
    with bench.store.read() as tx:
        return latest_attempt(tx, row.run_id)


def test_cancelling_ends_what_does_not_run_and_leaves_the_rest_to_its_agent(bench):
    attempt_id = bench.start(flow(node("a"), node("b"), node("c", "a")))
    (a,) = bench.claim(bench.agent(), limit=1)
    with bench.store.begin() as tx:
        cancel_attempt(tx, attempt_id, bench.now)
    assert bench.states(attempt_id) == {"a": "running", "b": "canceled", "c": "canceled"}
    bench.end(a, "stopped")
    assert bench.states(attempt_id)["a"] == "canceled"
    assert [row.state for row in bench.rows(run)] == ["canceled"]


def test_cancelling_a_run_that_never_started_ends_it(bench):
    (workflow_id,) = bench.save(flow(node("a")))
    run_id = bench.create(workflow_id)
    with bench.store.begin() as tx:
        cancel_attempt(tx, latest_attempt(tx, run_id), bench.now)
    assert [row.state for row in bench.rows(run)] == ["canceled"]
    assert bench.activate(workflow_id) is None


def test_a_run_that_ended_cannot_be_cancelled(bench):
    attempt_id = bench.start(flow(node("a", operator="noop")))
    with (
        pytest.raises(StateError, match=r"cannot stop run .*: it already ended as `success`"),
        bench.store.begin() as tx,
    ):
        cancel_attempt(tx, attempt_id, bench.now)


def test_a_run_that_takes_too_long_fails_and_its_late_result_bounces(bench):
    attempt_id = bench.start(flow(node("a"), node("b", "a"), timeout_seconds=60))
    (a,) = bench.claim(bench.agent())
    with bench.store.begin() as tx:
        time_out_attempt(tx, attempt_id, bench.now)
    assert bench.states(attempt_id) == {"a": "skipped", "b": "skipped"}
    assert [(row.state, row.reason) for row in bench.rows(run)] == [("failed", "timed_out")]
    assert len(bench.end(a).stale) == 1


def test_an_attempt_that_is_not_there_is_named(bench):
    with pytest.raises(NotFoundError, match="there is no run 12"), bench.store.read() as tx:
        latest_attempt(tx, 12)
