"""Nothing is started that others may have been given, nor what still runs here from a lease that was lost."""

from __future__ import annotations

import threading
import time

import pytest

from headrace.agent import Agent, AgentOptions, Broker
from headrace.clock import SystemClock, to_micros
from headrace.definition import Node, Workflow
from headrace.executor import InlineExecutor
from headrace.handoff import TaskResult
from headrace.store import (
    Database,
    NewRun,
    Report,
    RunGraph,
    Store,
    create_run,
    ensure_project,
    latest_attempt,
    list_tasks,
    list_tries,
    record_results,
    resign,
    save_file,
    start_queued_runs,
)
from headrace.testing.simulated_faults import NodeStore

LEASE_SECONDS = 0.6
LONG_SECONDS = 30.0


class SlowStore(NodeStore):
    """The answer to one commit of one thread can be made late."""

    def __init__(self, database):
        super().__init__(database, self.answer)
        self.late_for = None
        self.seconds = 0.0

    def answer(self, moment):
        if moment == "after" and threading.current_thread() is self.late_for:
            self.late_for = None
            threading.Event().wait(self.seconds)


@pytest.fixture
def store(prepared_url):
    store = SlowStore(Database(prepared_url))
    yield store
    store.dispose()


def start_run(store):
    now = to_micros(SystemClock().now())

    def work(tx):
        nodes = (Node(key="", kind="group"), Node(key="a", parent="", operator="work"))
        flow = Workflow(name="w", language="python", nodes=nodes)
        (saved,) = save_file(tx, ensure_project(tx, "p", "/", now), "w.py", "1", [flow], now)
        run_id = create_run(tx, NewRun(saved.id, "r1"), now)
        start_queued_runs(tx, saved.id, now)
        return latest_attempt(tx, run_id)

    return Store.transact(store, work)


def test_what_was_claimed_is_handed_back(store, tmp_path):
    started = []

    def succeed(request, channel):
        started.append(time.monotonic())
        return TaskResult(task_id=request.task_id, fence=request.fence, outcome="success")

    attempt_id = start_run(store)
    broker = Broker(store)
    options = AgentOptions(lease_seconds=LEASE_SECONDS, renew_seconds=LEASE_SECONDS / 4, retry_seconds=0.01)
    agent = Agent(store, SystemClock(), InlineExecutor(broker, succeed), InlineExecutor(broker), tmp_path, options)
    agent.start()
    # Nobody renews meanwhile: whatever holds up one answer holds up the others, too.
    agent._lease._stop.set()
    for thread in agent._lease._threads:
        thread.join()
    store.late_for, store.seconds = threading.current_thread(), LEASE_SECONDS
    answered_at = time.monotonic() + LEASE_SECONDS
    agent.step(0.0)
    assert time.monotonic() >= answered_at and not started
    agent.renew()
    until = time.monotonic() + LONG_SECONDS
    while not started:
        assert time.monotonic() < until
        agent.renew()
        agent.step(0.01)
    agent.renew()
    agent.step(0.0)
    with store.read() as tx:
        (task,) = (one for one in list_tasks(tx, attempt_id) if one.key == "a")
        tries = list_tries(tx, task.id)
    assert task.state == "success" and len(started) == 1
    assert [(one.try_number, one.state) for one in tries] == [(1, "success")]
    agent.stop(0.0)


class Stubborn:
    """An executor whose tries end when the test says so."""

    def __init__(self):
        self.started = []
        self.ended = []

    def free_slots(self):
        return 8

    def submit(self, requests):
        self.started += requests

    def poll(self, timeout_seconds):
        ended, self.ended = self.ended, []
        return [TaskResult(task_id=one.task_id, fence=one.fence, outcome="stopped") for one in ended]

    def running(self):
        return [(one.task_id, one.fence) for one in self.started]

    def waiting(self):
        return []

    def wake(self):
        pass

    def cancel(self, task_id, fence):
        pass

    def halt(self, number):
        return 0

    def close(self, grace_seconds):
        pass


def test_what_was_lost_is_not_started_again_before_its_process_is_gone(store, tmp_path):
    start_run(store)
    executor = Stubborn()
    agent = Agent(store, SystemClock(), executor, InlineExecutor(Broker(store)), tmp_path, AgentOptions())
    agent.start(renews_by_itself=False)
    agent.step(0.0)
    (first,) = executor.started
    now = to_micros(SystemClock().now())
    store.transact(lambda tx: resign(tx, agent.id, now))
    store.transact(lambda tx: hand_back(tx, first, now))
    agent.renew()
    for _ in range(3):
        agent.wake()
        agent.step(0.0)
    assert executor.started == [first]
    executor.ended.append(first)
    for _ in range(2):
        agent.wake()
        agent.step(0.0)
    assert [one.fence for one in executor.started] == [first.fence, first.fence + 1]


def hand_back(tx, request, now):
    """As if its agent had, so that it may be claimed at once."""
    graph = RunGraph(tx, now)
    result = TaskResult(task_id=request.task_id, fence=request.fence, outcome="stopped")
    record_results(tx, graph, [Report(request.run.attempt_id, result)], 10)
    graph.flush_events()
