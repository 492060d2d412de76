"""A triggerer whose triggers take long to clean up says to the others that it is stopping."""

from __future__ import annotations

import pytest

from headrace.agent import Broker
from headrace.errors import StoreUnreachableError
from headrace.store import live_agents
from headrace.triggerer import Triggerer, TriggererOptions


class SlowToLeave:
    """A process of triggers that runs nothing; while it cleans up, the test looks around."""

    pid = None
    pause_seconds = 0.0
    is_running = False

    def __init__(self, *_given):
        self.meanwhile = []

    def start(self):
        self.is_running = True

    def send(self, message):
        pass

    def halt(self, number):
        return False

    def stop(self, grace_seconds):
        for happen in self.meanwhile:
            happen()


class Watched:
    """A triggerer, and what others see of it while it stops."""

    def __init__(self, waiting):
        self.waiting = waiting
        self.child = SlowToLeave()
        self.child.meanwhile.append(self.look)
        self.seen = []
        options = TriggererOptions(renew_seconds=3600)
        broker = Broker(waiting.store)
        self.triggerer = Triggerer(
            waiting.store, waiting.clock, broker, waiting.logs, options, make_child=lambda *_: self.child
        )
        self.triggerer.start(is_announced=True)

    def run_a_trigger(self):
        self.waiting.start(a={"do": "wait"})
        self.triggerer.step(0.0)
        assert self.triggerer.running == 1

    def stopping_at(self):
        with self.waiting.store.read() as tx:
            return [one.stopping_at for one in live_agents(tx, self.waiting.now)]

    def look(self):
        self.seen += self.stopping_at()


@pytest.fixture
def watched(waiting):
    return Watched(waiting)


def test_a_triggerer_whose_triggers_clean_up_is_stopping(watched):
    watched.run_a_trigger()
    assert watched.stopping_at() == [None]
    began = watched.waiting.now
    watched.triggerer.stop()
    (seen,) = watched.seen
    assert began <= seen <= watched.waiting.now
    assert watched.stopping_at() == [], "it has resigned"


def test_one_that_cannot_say_so_stops_and_says_it_with_the_next_renewal(watched, monkeypatch):
    def fail(_work):
        raise StoreUnreachableError("the database is away")

    watched.run_a_trigger()
    with monkeypatch.context() as patch:
        watched.child.meanwhile += [patch.undo, watched.triggerer.renew, watched.look]
        patch.setattr(watched.waiting.store, "transact", fail)
        watched.triggerer.stop()
    before, after = watched.seen
    assert before is None and after is not None
    assert watched.stopping_at() == []


def test_one_that_runs_no_triggers_only_resigns(watched):
    before = watched.waiting.store.database.commits
    watched.triggerer.stop()
    assert watched.waiting.store.database.commits == before + 1
