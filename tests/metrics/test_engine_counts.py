"""The counters that tell of trouble, moved by the trouble itself."""

from __future__ import annotations

from datetime import timedelta

import pytest

from headrace.clock import SystemClock
from headrace.definition import Node, Workflow
from headrace.errors import StoreUnreachableError
from headrace.metrics.catalogue import (
    DATABASE_ERRORS,
    FAMILIES,
    LEASES_LOST,
    LEASES_RENEWED,
    PROCESSES_GIVEN_UP,
    STALE_RESULTS,
    TASKS_RESCUED,
    TICK_FAILURES,
    TICK_SECONDS,
    TRIES_ENDED,
)
from headrace.scheduler import Scheduler
from headrace.store import Store
from headrace.testing.engine import Engine


class Counted:
    """How far counters have moved since the beginning of the test."""

    def __init__(self, *counters):
        self._counters = [one if isinstance(one, tuple) else (one,) for one in counters]
        self._before = self._now()

    def moved(self):
        return [after - before for after, before in zip(self._now(), self._before, strict=True)]

    def _now(self):
        return [counter.value(*labels) for counter, *labels in self._counters]


@pytest.fixture
def engine(tmp_path):
    engine = Engine(tmp_path)
    yield engine
    engine.close()


def start(engine):
    """A run whose task is held by the agent and has not reported."""
    nodes = (Node(key="", kind="group"), Node(key="a", parent="", operator="python"))
    run = engine.start(Workflow(name="flow", language="python", nodes=nodes))
    engine.agent.wake()
    engine.agent.step(0.0)
    assert run.states() == {"a": "running"}
    return run


def test_an_agent_that_was_silent(engine):
    counted = Counted(
        (PROCESSES_GIVEN_UP, "silent"), TASKS_RESCUED, STALE_RESULTS, (LEASES_LOST, "agent"), (TRIES_ENDED, "success")
    )
    run = start(engine)
    engine.clock.advance(timedelta(minutes=1))
    engine.tick()
    engine.agent.step(0.0)
    engine.agent.renew()
    assert run.state == "failed"
    assert counted.moved() == [1, 1, 1, 1, 0]


def test_an_agent_that_lives(engine):
    counted = Counted((LEASES_RENEWED, "agent"), (LEASES_LOST, "agent"), STALE_RESULTS, (TRIES_ENDED, "success"))
    start(engine)
    engine.agent.renew()
    engine.settle()
    assert counted.moved() == [1, 0, 0, 1]


def test_every_service_of_a_scheduler_is_timed(engine):
    scheduler = Scheduler(engine.store, engine.clock)
    names = ["scheduler", *(beat.service.name for beat in scheduler._beats if beat.every_seconds)]
    before = [TICK_SECONDS.count(name) for name in names]
    scheduler.tick()
    assert [TICK_SECONDS.count(name) - count for name, count in zip(names, before, strict=True)] == [1] * len(names)


def test_what_alerts_are_about_is_there_before_it_happens(engine):
    Scheduler(engine.store, engine.clock).tick()
    engine.settle()
    there = {family.name: {one.labels for one in family.samples()} for family in FAMILIES}
    assert {("agent",), ("scheduler",)} <= there["headrace_leases_lost_total"]
    assert ("agent",) in there["headrace_lease_stops_total"] & there["headrace_lease_renewals_failed_total"]
    assert {("agent",), ("presence",), ("rescuer",)} <= there["headrace_tick_failures_total"]
    assert there["headrace_processes_given_up_total"] >= {("silent",), ("dead",)}
    assert there["headrace_runs_ended_total"] >= {("success",), ("failed",)}


def test_a_database_that_is_away(postgres_server):
    url = postgres_server.new_database()
    store = Store(url)
    store.close()
    postgres_server.drop_database(url)
    scheduler = Scheduler(store, SystemClock())
    counted = Counted((DATABASE_ERRORS, "unreachable"), (TICK_FAILURES, "scheduler"))
    with pytest.raises(StoreUnreachableError):
        scheduler.tick()
    assert counted.moved() == [1, 1]
    store.dispose()
