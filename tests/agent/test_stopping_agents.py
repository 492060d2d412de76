"""An agent that drains says so to the others, because it takes no more tasks."""

from __future__ import annotations

from datetime import timedelta

import pytest

from headrace.errors import StoreUnreachableError
from headrace.store import give_up, live_agents


class Watched:
    """An agent with a task that takes a minute, and what others see of it while it drains."""

    def __init__(self, place):
        self.place = place
        place.seconds = {"a": 60.0}
        place.start_run("a")
        self.agent = place.agent()
        self.agent.step(0.0)
        self.seen = []
        self.meanwhile = []
        """What happens after each look."""
        (executor,) = place.executors
        self._poll = executor.poll
        executor.poll = self._look_and_poll

    def stopping_at(self):
        with self.place.store.read() as tx:
            return [one.stopping_at for one in live_agents(tx, self.place.now)]

    def _look_and_poll(self, timeout_seconds):
        self.seen.append(self.stopping_at())
        if self.meanwhile:
            self.meanwhile.pop(0)()
        self.place.clock.advance(timedelta(seconds=25))
        return self._poll(timeout_seconds)


@pytest.fixture
def watched(place):
    return Watched(place)


def test_an_agent_that_drains_is_stopping_from_then_on(watched):
    assert watched.stopping_at() == [None]
    began = watched.place.now
    watched.agent.stop(600.0)
    assert watched.seen == [[began], [began], [began]]
    assert watched.stopping_at() == []
    assert watched.place.tasks("success") == ["a"]


def test_it_is_still_stopping_after_it_lost_its_lease(watched):
    def lose():
        watched.place.store.transact(lambda tx: give_up(tx, watched.agent.id, watched.place.now))
        watched.agent.renew()

    watched.meanwhile = [lose]
    began, first = watched.place.now, watched.agent.id
    watched.agent.stop(600.0)
    assert watched.agent.id != first
    assert watched.seen[:2] == [[began], [began]]


def test_one_that_cannot_say_so_drains_and_says_it_with_the_next_renewal(watched, monkeypatch):
    def fail(_work):
        raise StoreUnreachableError("the database is away")

    with monkeypatch.context() as patch:
        watched.meanwhile = [patch.undo, watched.agent.renew]
        patch.setattr(watched.place.store, "transact", fail)
        began = watched.place.now
        watched.agent.stop(600.0)
    assert watched.seen == [[None], [None], [began]]
    assert watched.place.tasks("success") == ["a"]


def test_one_that_runs_nothing_only_resigns(place):
    agent = place.agent()
    before = place.store.database.commits
    agent.stop(600.0)
    assert place.store.database.commits == before + 1
