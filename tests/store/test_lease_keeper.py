"""Work under a lease that cannot be renewed has ended before others may be given it."""

from __future__ import annotations

import re
import signal
import threading
import time
from datetime import timedelta

import pytest

from headrace.clock import SystemClock
from headrace.errors import StoreUnreachableError
from headrace.store import LeaseKeeper, Store

SECONDS = 3.0
LONG_SECONDS = 30.0


class Holder:
    """Somebody with a lease: what it answers to renewals is set by the test, and what it is told is kept."""

    def __init__(self, store, **options):
        self.clock = SystemClock()
        self.halted = []
        self.renewals = 0
        self.answer = True
        self.is_renewed = threading.Event()
        self.may_answer = threading.Event()
        self.may_answer.set()
        given = {"seconds": SECONDS, "renew_seconds": 0.05, "grace_seconds": 5.0, **options}
        named = {"kind": "agent", "name": "a"}
        self.keeper = LeaseKeeper(store, self.clock, extend=self.extend, halt=self.halt, **named, **given)

    def start(self):
        self.began_at = time.monotonic()
        self.keeper.begin(self.began_at)
        self.keeper.start(self.is_renewed.set)

    def extend(self):
        self.may_answer.wait(LONG_SECONDS)
        self.renewals += 1
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    def halt(self, number):
        self.halted.append((number, time.monotonic()))
        return 1

    def signals(self):
        return [number for number, _ in self.halted]

    def stop(self):
        self.may_answer.set()
        self.keeper.stop()


def wait_until(is_so):
    until = time.monotonic() + LONG_SECONDS
    while not is_so():
        assert time.monotonic() < until
        time.sleep(0.005)


@pytest.fixture
def store(tmp_path):
    store = Store(f"sqlite:///{tmp_path}/headrace.db")
    yield store
    store.dispose()


@pytest.fixture
def holder(store):
    made = []

    def make(**options):
        made.append(Holder(store, **options))
        return made[-1]

    yield make
    for one in made:
        one.stop()


def test_a_lease_that_is_renewed_is_safe(holder):
    one = holder(seconds=1.0, renew_seconds=0.02)
    one.start()
    wait_until(lambda: time.monotonic() > one.began_at + 1.3)
    assert one.keeper.is_safe and not one.halted and one.renewals > 5


@pytest.mark.parametrize("how", ["the database is away", "the database does not answer"])
def test_what_runs_ends_before_the_lease_does(holder, caplog, how):
    one = holder()
    if how == "the database is away":
        one.answer = StoreUnreachableError("nobody is there")
    else:
        one.may_answer.clear()
    one.start()
    wait_until(lambda: signal.SIGKILL in one.signals())
    (asked, asked_at), (killed, killed_at) = one.halted[:2]
    assert (asked, killed) == (signal.SIGTERM, signal.SIGKILL)
    assert asked_at - one.began_at > SECONDS / 2 and killed_at - one.began_at < SECONDS
    assert not one.keeper.is_safe
    assert re.search(
        r"agent `a` could not renew its lease for 2\.\d s \(limit 3 s\): what it runs is stopped \(1\)", caplog.text
    )


def test_work_that_begins_while_others_are_stopped_is_stopped_too(holder):
    one = holder(seconds=0.4)
    one.answer = StoreUnreachableError("nobody is there")
    one.start()
    wait_until(lambda: one.signals().count(signal.SIGKILL) >= 3)
    assert one.signals().count(signal.SIGTERM) >= 3


def test_a_lease_can_be_renewed_after_all(holder):
    one = holder(seconds=0.4)
    one.answer = StoreUnreachableError("nobody is there")
    one.start()
    wait_until(lambda: signal.SIGKILL in one.signals())
    one.answer = True
    wait_until(lambda: one.keeper.is_safe)
    assert not one.keeper.is_lost.is_set()


@pytest.mark.parametrize("renew_seconds", [0.05, 1.0])
def test_what_begins_after_the_database_answers_again_goes_on(holder, renew_seconds):
    one = holder(renew_seconds=renew_seconds)
    one.may_answer.clear()
    one.start()
    wait_until(lambda: signal.SIGKILL in one.signals())
    one.may_answer.set()
    wait_until(lambda: one.keeper.is_safe)
    # Whoever looked just before that may still stop something.
    safe_at = time.monotonic() + 0.03
    wait_until(lambda: time.monotonic() > safe_at + renew_seconds + 0.5)
    assert [number for number, at in one.halted if at > safe_at] == []


def test_who_was_given_up_stops_at_once(holder):
    one = holder(seconds=60.0, renew_seconds=0.01, grace_seconds=0.0)
    one.answer = False
    one.start()
    wait_until(lambda: signal.SIGKILL in one.signals())
    assert one.keeper.is_lost.is_set()
    one.keeper.begin(time.monotonic())
    assert not one.keeper.is_lost.is_set()


def test_nothing_is_ended_that_nobody_else_could_be_given(holder):
    one = holder(seconds=0.2, is_exclusive=True)
    one.answer = StoreUnreachableError("nobody is there")
    one.start()
    wait_until(lambda: time.monotonic() > one.began_at + 0.6)
    assert not one.halted and one.keeper.is_safe


def test_who_was_given_up_because_its_clock_was_wrong_sets_it(holder):
    one = holder()
    one.clock.offset, one.answer = timedelta(minutes=-5), False
    one.keeper.renew()
    assert one.keeper.is_lost.is_set() and one.clock.offset == timedelta(0)


def test_renewals_that_are_meant_to_be_rare_stop_nothing(holder):
    one = holder(seconds=0.1, renew_seconds=60.0)
    one.start()
    wait_until(lambda: time.monotonic() > one.began_at + 0.4)
    assert not one.halted and one.keeper.is_safe


def test_a_database_that_does_not_answer_is_not_waited_for(holder, monkeypatch):
    monkeypatch.setattr("headrace.store.lease_keeper._JOIN_SECONDS", 0.05)
    one = holder(renew_seconds=0.01)
    one.may_answer.clear()
    one.start()
    began = time.monotonic()
    one.keeper.stop()
    assert time.monotonic() - began < LONG_SECONDS / 2
