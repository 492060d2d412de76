"""When an agent looks for work: as soon as there is something that it could take, and not before."""

from __future__ import annotations

from datetime import timedelta

from agent_place import LONG, SLOTS

from headrace.store import News


def noticed(place, monkeypatch) -> list[str]:
    """Each time the agent is woken from now on."""
    wakes: list[str] = []
    monkeypatch.setattr(place.executors[0], "wake", lambda: wakes.append("woken"))
    return wakes


def test_an_agent_without_a_free_slot_is_not_woken_for_what_needs_one(place, monkeypatch):
    place.start_run("a", "b", "c")
    place.seconds = dict.fromkeys("abc", LONG)
    agent = place.agent()
    agent.step(0.0)
    assert len(place.tasks("running")) == SLOTS
    wakes = noticed(place, monkeypatch)
    place.store.wakeups.announce(News.WORK)
    assert wakes == []
    place.store.wakeups.announce(News.INLINE)
    assert wakes == ["woken"]


def test_what_came_meanwhile_is_taken_with_the_next_free_slot(place):
    place.start_run("a", "b")
    place.seconds = {"a": 10.0, "b": LONG, "c": LONG}
    agent = place.agent()
    agent.step(0.0)
    place.start_run("c", name="later")
    agent.step(0.0)
    assert place.tasks("scheduled") == ["c"]
    place.clock.advance(timedelta(seconds=10))
    assert agent.step(0.0) == 1
    assert place.tasks("running") == ["c"]


def test_tasks_without_code_are_taken_beside_results(place):
    place.start_run("a")
    agent = place.agent()
    agent.step(0.0)
    place.start_run("b", name="empty", isolation="inline")
    assert agent.step(0.0) == 1
    assert place.tasks("running") == ["b"]


def test_others_hear_apart_of_tasks_with_and_without_code(place):
    heard = []
    for kind in (News.WORK, News.INLINE):
        place.store.wakeups.subscribe(lambda kind=kind: heard.append(kind), kind)
    place.start_run("a")
    assert heard == [News.WORK]
    place.start_run("b", name="empty", isolation="inline")
    assert heard == [News.WORK, News.INLINE]
