"""The scheduler as a whole: its services in their rhythm, its sleep, its entry, and a database that goes away."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from timed_bench import flow, hourly, node

from headrace.clock import SystemClock
from headrace.definition import Retry, Schedule
from headrace.errors import StoreUnreachableError
from headrace.scheduler import Beat, Rescuer, Scheduler, SchedulerOptions
from headrace.store import NewRun, Told, Turn, create_run, lock_due_schedules, set_paused
from headrace.store import schema as tables


def settle(*schedulers):
    """Let schedulers tick in turn until all is quiet."""
    for _ in range(100):
        if not sum(scheduler.tick() for scheduler in schedulers):
            return
    raise AssertionError("the schedulers find no rest")


def test_run_goes_from_its_schedule_to_its_end_through_a_lost_agent_and_a_retry(bench):
    bench.save(flow("w", node("a", retry=Retry(limit=1, delay_seconds=30)), schedule=hourly()))
    scheduler = Scheduler(bench.store, bench.clock)
    scheduler.start()
    bench.advance(hours=1)
    settle(scheduler)
    bench.claim(bench.agent(lease=15))
    bench.advance(seconds=20)
    settle(scheduler)
    bench.advance(seconds=30)
    settle(scheduler)
    bench.finish_everything(bench.agent(lease=15))
    assert [state for _, state in bench.runs()] == ["success"]


def test_two_schedulers_ticking_in_turn_do_everything_once(bench):
    for number in range(3):
        bench.save(flow(f"w{number}", schedule=hourly(catch_up="all", start_at="2026-03-02T13:00:00Z")))
    schedulers = [Scheduler(bench.store, bench.clock) for _ in range(2)]
    for scheduler in schedulers:
        scheduler.start()
    agent = bench.agent(lease=1e6)
    for _ in range(5):
        bench.advance(hours=1)
        settle(*schedulers)
        bench.finish_everything(agent)
    assert [state for _, state in bench.runs()] == ["success"] * 15
    assert len(set(bench.times("w1"))) == 5


def test_scheduler_is_seen_while_it_is_there(bench):
    scheduler = Scheduler(bench.store, bench.clock, SchedulerOptions(name="clockwork"))
    scheduler.start()
    for _ in range(10):
        bench.advance(seconds=10)
        settle(scheduler)
    (row,) = bench.rows(tables.agent)
    assert (row.kind, row.name, bool(row.is_lost)) == ("scheduler", "clockwork", False)
    assert row.lease_until > bench.micros
    scheduler.stop()
    settle(scheduler)
    assert [bool(row.is_lost) for row in bench.rows(tables.agent)] == [True]


def test_scheduler_that_was_given_up_enters_again(bench):
    scheduler = Scheduler(bench.store, bench.clock)
    scheduler.start()
    Rescuer(bench.store).tick(bench.advance(hours=1))
    settle(scheduler)
    assert [bool(row.is_lost) for row in bench.rows(tables.agent)] == [True, False]


def test_quiet_tick_costs_one_statement_and_no_write(bench):
    bench.save(flow(schedule=hourly()))
    bench.save(flow("paused", schedule=hourly(), is_paused_at_creation=True))
    scheduler = Scheduler(bench.store, bench.clock)
    scheduler.start()
    bench.advance(hours=1)
    settle(scheduler)
    statements, commits = bench.store.database.statements, bench.store.database.commits
    assert scheduler.tick() == 0
    assert bench.store.database.statements - statements == 1
    assert bench.store.database.commits == commits


def test_schedulers_know_whose_turn_it_is_to_answer(bench):
    one, other = (Scheduler(bench.store, bench.clock) for _ in range(2))
    one.start()
    assert one._presence.turn == Turn(0, 1)
    other.start()
    bench.advance(seconds=6)
    settle(one, other)
    assert (one._presence.turn, other._presence.turn) == (Turn(0, 2), Turn(1, 2))
    one.stop()
    bench.advance(seconds=6)
    settle(other)
    assert other._presence.turn == Turn(0, 1)


def test_the_first_of_many_schedulers_answers_as_soon_as_one_alone(bench):
    alone, first, last = (Scheduler(bench.store, bench.clock) for _ in range(3))
    first._presence.turn, last._presence.turn = Turn(0, 8), Turn(7, 8)
    assert (first._wait_for_turn(Told()), first._breath_seconds()) == (0.0, alone._breath_seconds())
    assert last._wait_for_turn(Told()) > 0
    assert last._breath_seconds() > first._breath_seconds(), "those who only make sure look less often"


def test_a_later_scheduler_looks_less_often_until_it_finds_something(bench):
    (workflow_id,) = bench.save(flow())
    first, last = (Scheduler(bench.store, bench.clock) for _ in range(2))
    first.start(), last.start()
    bench.advance(seconds=6)
    settle(first, last)
    for _ in range(20):
        first.tick(), last.tick()
    assert first._breath_seconds() == Scheduler(bench.store, bench.clock)._breath_seconds()
    assert last._breath_seconds() < 0.5
    tired = last._breath_seconds()
    bench.store.transact(lambda tx: create_run(tx, NewRun(workflow_id, "r1"), bench.micros))
    assert last.tick() > 0
    assert first._breath_seconds() < last._breath_seconds() < tired / 5


def test_service_that_fails_does_not_stop_the_others(bench, caplog):
    class Broken:
        name = "broken service"
        calls = 0

        def tick(self, now):
            self.calls += 1
            raise ZeroDivisionError

    broken = Broken()
    scheduler = Scheduler(bench.store, bench.clock)
    scheduler._beats.insert(0, Beat(broken))
    bench.save(flow(schedule=hourly()))
    bench.advance(hours=1)
    settle(scheduler)
    assert len(bench.runs()) == 1
    assert "the broken service could not do its work" in caplog.text
    assert broken.calls == 1, "it is left alone for a while"
    bench.advance(seconds=1)
    settle(scheduler)
    assert broken.calls == 2


class Running:
    """A scheduler in a thread, with the real clock."""

    def __init__(self, store, options=None):
        self.scheduler = Scheduler(store, SystemClock(), options or SchedulerOptions(poll_seconds=60))
        self.thread = threading.Thread(target=self.scheduler.run)

    def __enter__(self):
        self.scheduler.start()
        self.thread.start()
        return self.scheduler

    def __exit__(self, *_):
        self.scheduler.stop()
        self.thread.join(10)
        assert not self.thread.is_alive()


def eventually(bench, condition) -> bool:
    """Whether something becomes true, looked at whenever the store announces a change."""
    changed = threading.Event()
    bench.store.wakeups.subscribe(changed.set)
    until = time.monotonic() + 60
    while time.monotonic() < until:
        if condition():
            return True
        changed.wait(0.1)
        changed.clear()
    return False


def test_loop_sleeps_until_the_next_timer(bench):
    bench.clock.advance(SystemClock().now() - bench.now)
    bench.save(flow(schedule=Schedule(type="interval", spec={"seconds": 0.3, "semantics": "digdag"}, catch_up="all")))
    with Running(bench.store):
        assert eventually(bench, lambda: len(bench.runs()) >= 3)


def test_loop_is_woken_by_what_others_commit(bench):
    bench.clock.advance(SystemClock().now() - bench.now - timedelta(minutes=1))
    (workflow_id,) = bench.save(flow(is_paused_at_creation=True))
    bench.store.transact(lambda tx: create_run(tx, NewRun(workflow_id, "r1"), bench.micros))
    with Running(bench.store):
        bench.store.transact(lambda tx: set_paused(tx, workflow_id, False))
        assert eventually(bench, lambda: [state for _, state in bench.runs()] == ["running"])


def test_loop_survives_a_database_that_goes_away(bench, monkeypatch, caplog):
    bench.clock.advance(SystemClock().now() - bench.now - timedelta(minutes=1))
    (workflow_id,) = bench.save(flow())
    read, failures = bench.store.read, []

    def away():
        if len(failures) < 2 and threading.current_thread() is running.thread:
            failures.append(1)
            raise StoreUnreachableError("could not reach the database")
        return read()

    monkeypatch.setattr("headrace.scheduler.loop.FIRST_WAIT_SECONDS", 0.01)
    monkeypatch.setattr(bench.store, "read", away)
    running = Running(bench.store)
    with running:
        bench.store.transact(lambda tx: create_run(tx, NewRun(workflow_id, "r1"), bench.micros))
        assert eventually(bench, lambda: [state for _, state in bench.runs()] == ["running"])
    assert "waiting for the database: could not reach the database" in caplog.text


def test_what_is_due_in_a_moment_is_looked_at_then(bench):
    """As a run is that somebody started by a clock which is a little ahead of the scheduler's."""
    (workflow_id,) = bench.save(flow("w"))
    scheduler = Scheduler(bench.store, bench.clock)
    scheduler.start()
    ahead = NewRun(workflow_id, "r1", run_after=bench.micros + 700)
    bench.store.transact(lambda tx: create_run(tx, ahead, bench.micros))
    settle(scheduler)
    assert scheduler.next_look(bench.now) == bench.now + timedelta(microseconds=700)
    assert [state for _, state in bench.runs()] == ["queued"]
    bench.advance(microseconds=700)
    settle(scheduler)
    assert [state for _, state in bench.runs()] == ["running"]


def test_what_is_due_and_cannot_be_served_keeps_nobody_awake(bench):
    if bench.store.database.dialect == "sqlite":
        pytest.skip("SQLite has one writer")
    bench.save(flow(schedule=hourly()))
    scheduler = Scheduler(bench.store, bench.clock)
    scheduler.start()
    settle(scheduler)
    bench.advance(hours=1)
    with ThreadPoolExecutor(1) as somebody, bench.store.begin() as tx:
        lock_due_schedules(tx, bench.micros, 1)
        assert somebody.submit(scheduler.tick).result() == 0
        assert scheduler.next_look(bench.now) > bench.now


def test_clock_is_corrected_to_the_databases(bench, monkeypatch):
    clock = SystemClock()
    monkeypatch.setattr(bench.store, "clock_offset", lambda: timedelta(hours=2))
    scheduler = Scheduler(bench.store, clock)
    scheduler.start()
    assert clock.offset == timedelta(hours=2)
    monkeypatch.setattr(bench.store, "clock_offset", lambda: timedelta(hours=3))
    scheduler.tick()
    assert clock.offset == timedelta(hours=3)
    scheduler.stop()
