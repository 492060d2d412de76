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


def test_while_all_are_short_more_are_taken_each_time(place):
    place.start_run(*"abcdefghijklmn")
    agent = place.agent()
    agent.step(0.0)
    assert place.tasks("running") == ["a", "b"]
    agent.step(0.0)
    assert place.tasks("success") == ["a", "b"]
    assert place.tasks("running") == ["c", "d", "e", "f"]
    agent.step(0.0)
    assert place.tasks("success") == ["a", "b", "c", "d"]
    assert place.tasks("running") == ["e", "f", "g", "h", "i", "j"]
    assert len(place.executors[0].waiting()) == 4
    for _ in range(5):
        agent.step(0.0)
    assert place.tasks("success") == list("abcdefghijklmn")


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


QUICK = 10.0 + SHORT_SECONDS / 2
SLOW = 10.0 + SHORT_SECONDS * 2


def submitted(slots, *numbers):
    """At second 10."""
    ahead = Ahead(slots)
    ahead.submitted(claims(*numbers), 10.0)
    return ahead


def claims(*numbers):
    return [(number, 1) for number in numbers]


def test_as_many_as_were_short_are_added_while_all_are():
    ahead = submitted(3, 1, 2, 3, 4)
    ahead.ended(claims(1), QUICK)
    assert ahead.room([]) == 1
    ahead.ended(claims(2, 3), QUICK)
    assert ahead.room([]) == 3 and ahead.room(claims(7)) == 2


def test_to_hear_of_nothing_new_changes_nothing_while_something_runs():
    ahead = submitted(3, 1, 2, 3)
    ahead.ended(claims(1, 2), QUICK)
    ahead.ended([], SLOW)
    assert ahead.room([]) == 2


def test_an_agent_that_has_rested_takes_nothing_ahead():
    ahead = submitted(3, 1, 2, 3)
    ahead.ended(claims(1, 2, 3), QUICK)
    ahead.ended([], QUICK)
    assert ahead.room([]) == 0


def test_what_was_not_submitted_says_nothing():
    ahead = submitted(3, 1, 2, 3)
    ahead.ended(claims(1, 9), QUICK)
    assert ahead.room([]) == 1
    ahead.ended(claims(9), QUICK)
    assert ahead.room([]) == 1


def test_long_ones_among_them_leave_those_that_were_short_or_half():
    ahead = submitted(8, *range(20))
    ahead.ended(claims(*range(9)), QUICK)
    ahead.submitted(claims(100), SLOW)
    ahead.ended(claims(9, 100), SLOW)
    assert ahead.room([]) == 4
    ahead.submitted(claims(*range(200, 203)), SLOW)
    ahead.ended(claims(10, *range(200, 203)), SLOW)
    assert ahead.room([]) == 3


def test_after_long_ones_alone_nothing_is_taken_ahead():
    ahead = submitted(8, *range(10))
    ahead.ended(claims(*range(9)), QUICK)
    ahead.ended(claims(9), SLOW)
    assert ahead.room([]) == 0


@pytest.mark.parametrize(("slots", "most"), [(1, 2 * LEAST), (LEAST + 2, 2 * LEAST + 4)])
def test_no_more_are_taken_ahead_than_fill_the_slots_twice(slots, most):
    ahead, many = Ahead(slots), [(number, 1) for number in range(100)]
    ahead.submitted(many, 10.0)
    ahead.ended(many, 10.0)
    assert ahead.room([]) == most
