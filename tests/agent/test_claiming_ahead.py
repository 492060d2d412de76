"""An agent whose tries are short takes the next tasks before it has slots for them, and keeps none of them waiting."""

from __future__ import annotations

from datetime import timedelta

import pytest
from agent_place import LONG

from headrace.agent.ahead import LEAST, PATIENCE_SECONDS, SHORT_SECONDS, Ahead
from headrace.store import set_pool


def test_after_short_tries_as_many_more_are_taken_than_there_were(place):
    place.start_run(*"abcdefg")
    place.seconds = dict.fromkeys("b", LONG)
    agent = place.agent()
    agent.step(0.0)
    assert place.tasks("running") == ["a", "b"]
    agent.step(0.0)
    assert place.tasks("success") == ["a"]
    assert place.tasks("running") == ["b", "c", "d"]
    assert len(place.executors[0].waiting()) == 1
    for _ in range(5):
        agent.step(0.0)
    assert place.tasks("success") == ["a", "c", "d", "e", "f", "g"]


def test_after_slots_stood_still_twice_as_many_more_are_taken(place):
    place.start_run(*"abcdefghi")
    agent = place.agent()
    agent.step(0.0)
    assert place.tasks("running") == ["a", "b"]
    agent.step(0.0)
    assert place.tasks("success") == ["a", "b"]
    assert place.tasks("running") == ["c", "d", "e", "f", "g", "h"]
    assert len(place.executors[0].waiting()) == 4
    for _ in range(3):
        agent.step(0.0)
    assert place.tasks("success") == list("abcdefghi")


def test_after_long_tries_nothing_is_taken_ahead(place):
    place.start_run("a", "b", "c", "d", "e")
    place.seconds = dict.fromkeys("ab", SHORT_SECONDS * 2)
    agent = place.agent()
    agent.step(0.0)
    place.clock.advance(timedelta(seconds=SHORT_SECONDS * 2))
    agent.step(0.0)
    assert place.tasks("running") == ["c", "d"]
    assert place.executors[0].waiting() == []


def test_what_waits_behind_long_tries_goes_back_and_another_agent_takes_it(place):
    place.start_run("a", "b", "c", "d", "e", "f")
    place.seconds = dict.fromkeys("cd", LONG)
    one = place.agent()
    one.step(0.0)
    one.step(0.0)
    assert place.tasks("running") == ["c", "d", "e", "f"]
    place.clock.advance(timedelta(seconds=PATIENCE_SECONDS))
    one.step(0.0)
    one.step(0.0)
    assert place.tasks("running") == ["c", "d"]
    assert place.tasks("scheduled") == ["e", "f"]
    two = place.agent("two")
    two.step(0.0)
    two.step(0.0)
    assert place.tasks("success") == ["a", "b", "e", "f"]
    # What was handed back had not begun, so it was no try.
    assert place.tries()["e"] == place.tries()["f"] == [(1, "success")]


def test_what_has_a_slot_by_then_is_not_handed_back(place):
    place.start_run("a", "b", "c", "d", "e", "f")
    agent = place.agent()
    agent.step(0.0)
    agent.step(0.0)
    # The commit has taken long: the tries before them ended meanwhile, and nobody has looked yet.
    place.clock.advance(timedelta(seconds=PATIENCE_SECONDS * 2))
    agent.step(0.0)
    agent.step(0.0)
    assert place.tasks("success") == ["a", "b", "c", "d", "e", "f"]
    assert all(tries == [(1, "success")] for tries in place.tries().values())


def test_an_agent_that_is_told_to_stop_hands_back_at_once_what_has_not_begun(place):
    place.start_run("a", "b", "c", "d", "e", "f")
    place.seconds = dict.fromkeys("cd", LONG)
    agent = place.agent()
    agent.step(0.0)
    agent.step(0.0)
    assert len(place.executors[0].waiting()) == 2
    agent.stop(0.0)
    assert place.tasks("scheduled") == ["c", "d", "e", "f"]
    assert {key: place.tries()[key] for key in "cdef"} == {
        "c": [(1, "canceled")], "d": [(1, "canceled")], "e": [], "f": [],
    }  # fmt: skip


def test_what_is_taken_ahead_counts_for_every_limit(place):
    place.store.transact(lambda tx: set_pool(tx, "three", 3))
    place.start_run("a", "b", "c", "d", "e", "f", "g", pool="three")
    agent = place.agent()
    for _ in range(2):
        agent.step(0.0)
    assert len(place.tasks("running")) == 3


def test_only_as_many_as_were_short_may_be_taken_ahead():
    ahead = Ahead(slots=3)
    ahead.submitted([(1, 1), (2, 1), (3, 1), (4, 1), (5, 1)], 10.0)
    ahead.ended([(1, 1)], 10.0 + SHORT_SECONDS / 2)
    assert ahead.room([]) == 1
    ahead.ended([(2, 1), (3, 1), (4, 1), (9, 1)], 10.0 + SHORT_SECONDS / 2)
    assert ahead.room([]) == 3 and ahead.room([(7, 1)]) == 2
    ahead.ended([], 10.0 + SHORT_SECONDS / 2)
    assert ahead.room([]) == 0
    ahead.ended([(5, 1)], 10.0 + SHORT_SECONDS * 2)
    assert ahead.room([]) == 0


def test_after_a_smaller_batch_half_as_many_may_be_taken_ahead():
    ahead = Ahead(slots=8)
    ahead.submitted([(number, 1) for number in range(10)], 10.0)
    ahead.ended([(number, 1) for number in range(8)], 10.0)
    ahead.ended([(8, 1)], 10.0)
    assert ahead.room([]) == 4
    ahead.ended([(9, 1)], 10.0 + SHORT_SECONDS * 2)
    assert ahead.room([]) == 0


def test_after_as_many_as_may_be_taken_a_smaller_batch_leaves_half():
    ahead, many = Ahead(slots=8), [(number, 1) for number in range(24)]
    ahead.submitted(many, 10.0)
    ahead.ended(many, 10.0, stood_still=True)
    assert ahead.room([]) == 16
    ahead.submitted([(100, 1)], 10.0)
    ahead.ended([(100, 1)], 10.0)
    assert ahead.room([]) == 8


def test_after_all_have_ended_twice_as_many_may_be_taken_ahead():
    ahead = Ahead(slots=8)
    ahead.submitted([(1, 1), (2, 1), (3, 1)], 10.0)
    ahead.ended([(1, 1), (2, 1)], 10.0, stood_still=True)
    assert ahead.room([]) == 4
    ahead.ended([(3, 1)], 10.0 + SHORT_SECONDS * 2, stood_still=True)
    assert ahead.room([]) == 0


@pytest.mark.parametrize(("slots", "most"), [(1, 2 * LEAST), (LEAST + 2, 2 * LEAST + 4)])
def test_no_more_are_taken_ahead_than_fill_the_slots_twice(slots, most):
    ahead, many = Ahead(slots), [(number, 1) for number in range(100)]
    ahead.submitted(many, 10.0)
    ahead.ended(many, 10.0)
    assert ahead.room([]) == most
