"""Tasks and runs that wait for a time, or have taken too much of it."""

from __future__ import annotations

from sqlalchemy import update
from timed_bench import flow, hourly, node

from headrace.clock import to_micros
from headrace.definition import Retry
from headrace.scheduler import DeadlineKeeper, RunActivator, Waker
from headrace.store import NewRun, clear_tasks, create_run, next_due, set_paused
from headrace.store import schema as tables


def test_failed_task_is_tried_again_when_its_delay_is_over(bench):
    attempt = bench.start(flow("w", node("a", retry=Retry(limit=1, delay_seconds=30))))
    waker, agent = Waker(bench.store), bench.agent(lease=1e6)
    (task,) = bench.claim(agent)
    bench.end(task, "failed")
    assert bench.task(attempt).state == "up_for_retry"
    assert waker.tick(bench.advance(seconds=29)) == 0
    assert waker.tick(bench.advance(seconds=1)) == 1
    assert (bench.task(attempt).state, bench.task(attempt).try_number) == ("scheduled", 2)
    assert waker.tick(bench.now) == 0


def test_poll_is_made_again_at_its_time_in_the_same_try(bench):
    attempt = bench.start(flow())
    (task,) = bench.claim(bench.agent(lease=1e6))
    bench.end(task, "again", again_after_seconds=10)
    assert Waker(bench.store).tick(bench.advance(seconds=10)) == 1
    assert (bench.task(attempt).state, bench.task(attempt).try_number) == ("scheduled", 1)


def test_many_due_tasks_are_woken_in_small_batches(bench):
    names = [f"t{number}" for number in range(7)]
    attempt = bench.start(flow("w", *(node(name, retry=Retry(limit=1, delay_seconds=5)) for name in names)))
    for task in bench.claim(bench.agent(lease=1e6)):
        bench.end(task, "failed")
    before = bench.store.database.commits
    assert Waker(bench.store, batch_size=3).tick(bench.advance(seconds=5)) == 7
    assert bench.store.database.commits - before == 3
    assert {bench.task(attempt, name).state for name in names} == {"scheduled"}


def test_try_over_its_time_limit_is_ended_and_its_late_result_changes_nothing(bench):
    attempt = bench.start(flow("w", node("a", timeout_seconds=60)))
    (task,) = bench.claim(bench.agent(lease=1e6))
    waker = Waker(bench.store)
    assert waker.tick(bench.advance(seconds=61)) == 0, "its agent is given time to end it by itself"
    assert waker.tick(bench.advance(minutes=1)) == 1
    assert (bench.task(attempt).state, bench.attempt(attempt).state) == ("failed", "failed")
    assert "took longer than 60 s" in bench.task(attempt).error
    assert [row.state for row in bench.rows(tables.try_, tables.try_.c.task_id == task.id)] == ["failed"]
    assert len(bench.end(task).stale) == 1


def test_task_that_was_cleared_while_it_ran_begins_anew_if_its_agent_never_ends_it(bench):
    attempt = bench.start(flow("w", node("a", timeout_seconds=60)))
    (task,) = bench.claim(bench.agent(lease=1e6))
    bench.store.transact(lambda tx: clear_tasks(tx, attempt, [task.id], bench.micros))
    assert bench.task(attempt).state == "restarting"
    assert Waker(bench.store).tick(bench.advance(minutes=5)) == 1
    assert bench.task(attempt).state == "scheduled"
    assert Waker(bench.store).tick(bench.now) == 0


def test_run_over_its_time_limit_fails_and_makes_room_for_the_next(bench):
    one = flow(timeout_seconds=3600, max_active_runs=1)
    first = bench.start(one, "r1")
    second = bench.start(one, "r2")
    keeper, activator = DeadlineKeeper(bench.store), RunActivator(bench.store)
    assert keeper.tick(bench.advance(minutes=59)) == 0
    assert keeper.tick(bench.advance(minutes=1)) == 1
    assert (bench.attempt(first).state, bench.attempt(first).reason) == ("failed", "timed_out")
    assert bench.attempt(second).state == "queued"
    assert activator.tick(bench.now) == 1
    assert bench.attempt(second).state == "running"
    assert keeper.tick(bench.now) == 0


def test_queued_run_starts_when_its_time_has_come(bench):
    (workflow_id,) = bench.save(flow())
    later = to_micros(bench.now) + 60_000_000
    bench.store.transact(lambda tx: create_run(tx, NewRun(workflow_id, "later", run_after=later), bench.micros))
    activator = RunActivator(bench.store)
    assert activator.tick(bench.advance(seconds=59)) == 0
    assert activator.tick(bench.advance(seconds=1)) == 1
    assert [row.state for row in bench.rows(tables.run)] == ["running"]


def test_queued_runs_of_a_paused_workflow_wait(bench):
    (workflow_id,) = bench.save(flow())
    bench.store.transact(lambda tx: set_paused(tx, workflow_id, True))
    bench.store.transact(lambda tx: create_run(tx, NewRun(workflow_id, "r1"), bench.micros))
    assert RunActivator(bench.store).tick(bench.now) == 0
    bench.store.transact(lambda tx: set_paused(tx, workflow_id, False))
    assert RunActivator(bench.store).tick(bench.now) == 1


def test_no_more_runs_are_activated_than_the_limit_allows(bench):
    one = flow(max_active_runs=2)
    attempts = [bench.start(one, f"r{number}") for number in range(4)]
    assert RunActivator(bench.store).tick(bench.now) == 0, "a workflow without room is not even looked at"
    (task, _) = bench.claim(bench.agent(lease=1e6))
    bench.end(task)
    assert RunActivator(bench.store).tick(bench.now) == 1
    assert [bench.attempt(attempt).state for attempt in attempts] == ["success", "running", "running", "queued"]


def test_next_due_is_the_earliest_of_all_timers(bench):
    def due_in():
        with bench.store.read() as tx:
            at = next_due(tx, bench.micros)
        return None if at is None else (at - bench.micros) / 1e6

    assert due_in() is None
    bench.save(flow("scheduled", schedule=hourly(start_at="2026-03-02T13:00:00Z")))
    assert due_in() == 3600
    bench.start(flow("limited", timeout_seconds=600))
    assert due_in() == 600
    (workflow_id,) = bench.save(flow("queued"))
    soon = bench.micros + 60_000_000
    bench.store.transact(lambda tx: create_run(tx, NewRun(workflow_id, "r", run_after=soon), bench.micros))
    assert due_in() == 60
    with bench.store.begin() as tx:
        tx.execute(update(tables.task).where(tables.task.c.key == "a").values(due_at=bench.micros + 1_000_000))
    assert due_in() == 1
