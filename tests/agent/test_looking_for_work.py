"""When an agent looks for work: as soon as there is something that it could take, and not before."""

from __future__ import annotations

from datetime import timedelta

from agent_place import LONG, SLOTS

from headrace.store import News, Told


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


def spent(place, agent) -> tuple[int, int]:
    """What a step of the agent costs: statements and commits."""
    database = place.store.database
    before = database.statements, database.commits
    agent.step(0.0)
    return database.statements - before[0], database.commits - before[1]


def test_who_hears_of_what_others_have_taken_asks_one_question_and_takes_no_lock(place):
    one, other = place.agent(), place.agent("other")
    one.renew()
    place.start_run("a")
    place.seconds = {"a": LONG}
    one.step(0.0)
    assert place.tasks("running") == ["a"]
    assert spent(place, other) == (1, 0)


def test_who_is_alone_takes_without_asking_first(place):
    agent = place.agent()
    assert spent(place, agent)[1] == 1
    place.agent("other")
    agent.renew()
    assert spent(place, agent)[1] == 0


def test_what_is_left_is_taken_by_the_next_one(place):
    one, other = place.agent(), place.agent("other")
    place.start_run("a", "b", "c")
    place.seconds = dict.fromkeys("abc", LONG)
    one.step(0.0)
    assert len(place.tasks("running")) == SLOTS
    other.step(0.0)
    assert place.tasks("running") == ["a", "b", "c"]


def test_without_a_free_slot_one_asks_only_for_what_needs_none(place):
    one, other = place.agent(), place.agent("other")
    place.start_run("a", "b", "c")
    place.seconds = dict.fromkeys("abc", LONG)
    other.step(0.0)
    assert spent(place, other) == (1, 0), "there is a task, but none for it"
    place.start_run("d", name="empty", isolation="inline")
    other.step(0.0)
    assert place.tasks("running") == ["d"]
    one.step(0.0)


def test_an_agent_for_one_run_does_not_leave_it_to_others(place):
    place.start_run("a")
    place.agent("other")
    own = place.agent(attempt_id=place.attempt_id)
    assert own._registration.turn.of == 2
    assert own._wait_for_turn(Told(1, 0)) == 0.0
    assert place.agent("third")._wait_for_turn(Told(1, 0)) > 0.0
