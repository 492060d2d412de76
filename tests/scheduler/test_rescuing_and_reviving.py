"""Agents that are gone cost a try, not a run; runs in which nothing moves go on or fail."""

from __future__ import annotations

import os
import subprocess

import pytest
from sqlalchemy import update
from timed_bench import flow, node

from headrace.definition import Retry
from headrace.processes import place
from headrace.scheduler import Rescuer, Reviver, Waker
from headrace.scheduler.rescuer import Patience, describe
from headrace.state import State
from headrace.store import extend_lease, give_up, resign, revive_attempt
from headrace.store import schema as tables

RETRY = Retry(limit=1, delay_seconds=30)


def test_tasks_of_a_silent_agent_are_tried_again_and_then_fail(bench, caplog):
    attempt = bench.start(flow("w", *(node(name, retry=RETRY) for name in "abcd")))
    rescuer, waker = Rescuer(bench.store), Waker(bench.store)
    tasks = bench.claim(bench.agent("worker-3", lease=90))
    assert rescuer.tick(bench.advance(seconds=90)) == 0
    assert rescuer.tick(bench.advance(seconds=5)) == 5
    assert {bench.task(attempt, name).state for name in "abcd"} == {"up_for_retry"}
    assert "agent `worker-3` silent for 95 s (limit 90 s): its 4 tasks are up for retry" in caplog.messages
    assert len(bench.end(tasks[0]).stale) == 1, "a late result bounces off"
    waker.tick(bench.advance(seconds=30))
    bench.claim(bench.agent("worker-4", lease=90))
    rescuer.tick(bench.advance(seconds=91))
    assert {bench.task(attempt, name).state for name in "abcd"} == {"failed"}
    assert bench.attempt(attempt).state == "failed"
    assert "agent `worker-4` silent for 91 s (limit 90 s): its 4 tasks failed" in caplog.messages
    assert rescuer.tick(bench.now) == 0


def test_agent_that_renews_its_lease_keeps_its_tasks(bench):
    attempt = bench.start(flow())
    agent = bench.agent(lease=15)
    bench.claim(agent)
    for _ in range(5):
        bench.advance(seconds=10)
        assert bench.store.transact(lambda tx: extend_lease(tx, agent, bench.micros, 15_000_000))
        assert Rescuer(bench.store).tick(bench.now) == 0
    assert bench.task(attempt).state == "running"


def test_a_scheduler_that_was_away_itself_gives_agents_time_to_renew(bench):
    attempt = bench.start(flow("w", node("a", retry=RETRY), node("b", retry=RETRY)))
    rescuer = Rescuer(bench.store, patience=Patience(5, usual_gap_seconds=1))
    alive, dead = bench.agent("alive", lease=15), bench.agent("dead", lease=15)
    of_alive, of_dead = bench.claim(alive, limit=1)[0].key, bench.claim(dead, limit=1)[0].key
    rescuer.tick(bench.now)
    assert rescuer.tick(bench.advance(seconds=60)) == 0
    assert bench.store.transact(lambda tx: extend_lease(tx, alive, bench.micros, 15_000_000))
    assert rescuer.tick(bench.advance(seconds=4)) == 0
    assert rescuer.tick(bench.advance(seconds=1)) == 2
    assert (bench.task(attempt, of_alive).state, bench.task(attempt, of_dead).state) == ("running", "up_for_retry")


def test_a_scheduler_that_is_always_slow_is_not_patient_for_ever():
    patience, now = Patience(5, usual_gap_seconds=1), 0
    asked = [patience.is_asked_for(now := now + 10_000_000) for _ in range(6)]
    assert asked == [False, True, False, True, False, True]
    assert not any(Patience(5, usual_gap_seconds=10).is_asked_for(at * 11_000_000) for at in range(6))


def test_task_of_an_agent_that_stopped_is_rescued_at_once(bench, caplog):
    attempt = bench.start(flow("w", node("a", retry=RETRY)))
    agent = bench.agent("worker-3", lease=900)
    bench.claim(agent)
    bench.store.transact(lambda tx: resign(tx, agent, bench.micros))
    assert Rescuer(bench.store).tick(bench.now) == 1
    assert bench.task(attempt).state == "up_for_retry"
    assert "agent `worker-3` stopped: its task is up for retry" in caplog.messages


def test_task_of_an_agent_that_others_gave_up_is_told_as_such(bench, caplog):
    bench.start(flow("w", node("a", retry=RETRY)))
    agent = bench.agent("worker-3", lease=900)
    bench.claim(agent)
    bench.store.transact(lambda tx: give_up(tx, agent, bench.micros))
    assert Rescuer(bench.store).tick(bench.now) == 1
    assert caplog.messages == ["agent `worker-3` is gone: its task is up for retry"]


def test_task_of_a_process_that_died_here_is_rescued_at_once(bench, caplog):
    attempt = bench.start(flow("w", node("a", retry=RETRY)))
    dead = subprocess.Popen(["true"])
    dead.wait()
    bench.agent("alive", place=place(), pid=os.getpid(), lease=900)
    bench.agent("far away", place="elsewhere", pid=dead.pid, lease=900)
    bench.claim(bench.agent("dead", place=place(), pid=dead.pid, lease=900))
    assert Rescuer(bench.store).tick(bench.now) == 2
    assert bench.task(attempt).state == "up_for_retry"
    assert f"agent `dead` (process {dead.pid}) is dead: its task is up for retry" in caplog.messages
    assert [bool(row.is_lost) for row in bench.rows(tables.agent)] == [False, False, True]


@pytest.mark.parametrize("kind", ["agent", "scheduler", "triggerer"])
def test_a_process_that_died_here_is_told_by_its_kind_and_name(bench, caplog, kind):
    dead = subprocess.Popen(["true"])
    dead.wait()
    bench.agent("a {name}", kind=kind, place=place(), pid=dead.pid, lease=900)
    assert Rescuer(bench.store).tick(bench.now) == 1
    assert caplog.messages == [f"{kind} `a {{name}}` (process {dead.pid}) is dead: it held no tasks"]


def test_many_lost_tasks_are_rescued_in_small_batches(bench):
    names = [f"t{number}" for number in range(7)]
    bench.start(flow("w", *(node(name, retry=RETRY) for name in names)))
    bench.claim(bench.agent(lease=15))
    assert Rescuer(bench.store, batch_size=3).tick(bench.advance(seconds=16)) == 8
    states = {row.state for row in bench.rows(tables.task, tables.task.c.parent_id.is_not(None))}
    assert states == {"up_for_retry"}


@pytest.mark.parametrize(
    ("states", "sentence"),
    [
        ([], "it held no tasks"),
        ([State.FAILED], "its task failed"),
        ([State.SCHEDULED, State.UP_FOR_RETRY], "its 2 tasks are up for retry"),
        ([State.FAILED, State.CANCELED, State.NONE], "of its 3 tasks 1 is canceled, 1 failed, 1 is up for retry"),
    ],
)
def test_sentence_about_the_tasks_of_a_lost_agent(states, sentence):
    assert describe(states) == sentence


def test_half_advanced_run_goes_on(bench, caplog):
    attempt = bench.start(flow("w", node("a"), node("b", "a")))
    assert Reviver(bench.store).tick(bench.now) == 0
    with bench.store.begin() as tx:
        tx.execute(update(tables.task).where(tables.task.c.key == "a").values(state="none", try_number=0))
    assert Reviver(bench.store).tick(bench.now) == 1
    assert bench.task(attempt, "a").state == "scheduled"
    bench.finish_everything(bench.agent(lease=1e6))
    assert bench.attempt(attempt).state == "success"
    assert "come to a standstill: it goes on" in caplog.text


def test_open_group_without_open_children_is_closed(bench):
    attempt = bench.start(flow())
    (task,) = bench.claim(bench.agent(lease=1e6))
    with bench.store.begin() as tx:
        tx.execute(update(tables.task).where(tables.task.c.id == task.id).values(state="success"))
        tx.execute(update(tables.task).where(tables.task.c.key == "").values(children_open=0))
    assert Reviver(bench.store).tick(bench.now) == 1
    assert bench.attempt(attempt).state == "success"


def test_run_in_which_nothing_can_ever_move_fails(bench, caplog):
    attempt = bench.start(flow("w", node("a"), node("b", "a")))
    with bench.store.begin() as tx:
        stuck = update(tables.task).where(tables.task.c.key == "a")
        tx.execute(stuck.values(state="none", expected=1))
    assert Reviver(bench.store).tick(bench.now) == 1
    assert (bench.attempt(attempt).state, bench.attempt(attempt).reason) == ("failed", "deadlocked")
    assert [state for _, state in bench.runs()] == ["failed"]
    assert bench.task(attempt, "a").state == "none"
    assert Reviver(bench.store).tick(bench.now) == 0


def test_runs_that_wait_for_something_are_not_stalled(bench):
    retrying = bench.start(flow("retrying", node("a", retry=RETRY)))
    agent = bench.agent(lease=1e6)
    (task,) = bench.claim(agent)
    bench.end(task, "failed")
    bench.start(flow("running"))
    bench.claim(agent)
    bench.start(flow("scheduled"))
    deferred = bench.start(flow("deferred"))
    with bench.store.begin() as tx:
        tx.execute(update(tables.task).where(tables.task.c.attempt_id == deferred).values(state="deferred"))
    assert Reviver(bench.store, batch_size=1).tick(bench.now) == 0
    assert bench.attempt(retrying).state == "running"


def test_run_that_moved_since_it_was_found_is_left_alone(bench):
    attempt = bench.start(flow())
    assert bench.store.transact(lambda tx: revive_attempt(tx, attempt, bench.micros)) is None
    assert (bench.task(attempt).state, bench.attempt(attempt).state) == ("scheduled", "running")
