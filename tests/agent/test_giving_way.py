"""Agents of one machine: while one of them keeps its processors busy, the others leave the tasks to it."""

from __future__ import annotations

from datetime import timedelta

import pytest
from agent_place import LONG, SLOTS

from headrace.agent import MachineProcessors
from headrace.agent.giving_way import IN_VAIN_SECONDS, LOOK_SECONDS, MOMENT_SECONDS, GivingWay
from headrace.store import Pace, give_up

WORKS = Pace(slots=4, old=0, new=3, is_work_left=True)
RESTS = Pace(slots=4, old=0, new=0, is_work_left=False)
IS_FULL = Pace(slots=4, old=3, new=1, is_work_left=True)
IS_STUCK = Pace(slots=4, old=0, new=0, is_work_left=True)


class Processors:
    """As busy as a test says."""

    count = 2

    def __init__(self, idle_share=0.0):
        self.share = idle_share

    def idle_share(self):
        return self.share


# ---- the rule ------------------------------------------------------------------------------------------------------


def decide(share, *others):
    way = GivingWay(Processors(share))
    way.look(0.0, lambda: others)
    return way.is_on


@pytest.mark.parametrize("other", [WORKS, RESTS])
def test_one_gives_way_to_who_keeps_up_while_the_processors_are_busy(other):
    assert decide(0.05, other)
    assert not decide(0.5, other)


@pytest.mark.parametrize("other", [IS_FULL, IS_STUCK])
def test_one_does_not_give_way_to_who_has_no_slot_or_takes_nothing(other):
    assert not decide(0.05, other)
    assert decide(0.05, other, WORKS), "one that keeps up is enough"


def test_it_is_looked_at_again_after_a_moment():
    way, asked = GivingWay(Processors()), []
    way.look(0.0, lambda: asked.append(1) or [WORKS])
    way.look(MOMENT_SECONDS - 0.001, lambda: asked.append(2) or [IS_STUCK])
    assert (asked, way.is_on) == ([1], True)
    assert way.seconds_left(0.04) == pytest.approx(MOMENT_SECONDS - 0.04)
    way.look(MOMENT_SECONDS, lambda: asked.append(3) or [IS_STUCK])
    assert (asked, way.is_on) == ([1, 3], False)
    assert way.seconds_left(0.2) == float("inf")


def test_while_there_is_enough_for_all_nobody_is_asked():
    way = GivingWay(Processors(0.5))
    way.look(0.0, lambda: pytest.fail("no question is needed"))
    assert not way.is_on


def test_work_that_has_just_begun_does_not_mean_in_vain():
    processors = Processors()
    way = GivingWay(processors)
    way.look(0.0, lambda: [RESTS])
    processors.share = 0.4
    way.look(1.0, lambda: [WORKS])
    processors.share = 0.0
    way.look(1.0 + LOOK_SECONDS, lambda: [WORKS])
    assert way.is_on


def test_who_gave_way_in_vain_takes_part_for_a_while():
    processors = Processors()
    way = GivingWay(processors)
    way.look(0.0, lambda: [WORKS])
    processors.share = 0.4
    way.look(1.0, lambda: [WORKS])
    processors.share = 0.0
    way.look(1.0 + IN_VAIN_SECONDS - 0.01, lambda: [WORKS])
    assert not way.is_on, "alone, the other one does not do all that the machine can"
    way.look(1.0 + IN_VAIN_SECONDS, lambda: [WORKS])
    assert way.is_on


def test_who_has_left_tasks_to_one_that_is_frozen_takes_part_for_a_while():
    way = GivingWay(Processors())
    way.look(0.0, lambda: [RESTS])
    way.look(1.0, lambda: [IS_STUCK])
    way.look(1.0 + IN_VAIN_SECONDS - 0.01, lambda: [RESTS])
    assert not way.is_on
    way.look(1.0 + IN_VAIN_SECONDS, lambda: [RESTS])
    assert way.is_on


def test_one_gives_way_again_as_soon_as_long_tasks_have_ended():
    way = GivingWay(Processors())
    way.look(0.0, lambda: [WORKS])
    way.look(1.0, lambda: [IS_FULL])
    assert not way.is_on
    way.look(1.0 + LOOK_SECONDS, lambda: [WORKS])
    assert way.is_on


def test_while_nobody_has_anything_to_do_it_is_not_looked_at_before_the_next_news():
    way = GivingWay(Processors())
    way.hear()
    way.look(0.0, lambda: [RESTS])
    assert way.seconds_left(0.0) == pytest.approx(MOMENT_SECONDS), "what the news are of may be left"
    way.look(1.0, lambda: [RESTS])
    assert way.is_on
    assert way.seconds_left(1.0) == float("inf")
    way.hear()
    assert way.seconds_left(1.05) == pytest.approx(MOMENT_SECONDS - 0.05)
    way.look(2.0, lambda: [RESTS])
    way.look(3.0, lambda: [WORKS])
    assert way.seconds_left(3.0) == pytest.approx(MOMENT_SECONDS)


def test_news_that_come_while_others_are_asked_are_not_missed():
    way = GivingWay(Processors())
    way.look(0.0, lambda: way.hear() or [RESTS])
    assert way.seconds_left(0.0) == pytest.approx(MOMENT_SECONDS)


def test_that_the_work_has_ended_does_not_mean_in_vain():
    processors = Processors()
    way = GivingWay(processors)
    way.look(0.0, lambda: [WORKS])
    processors.share = 0.9
    way.look(1.0, lambda: [RESTS])
    processors.share = 0.0
    way.look(1.0 + LOOK_SECONDS, lambda: [WORKS])
    assert way.is_on


# ---- agents --------------------------------------------------------------------------------------------------------


@pytest.fixture
def processors():
    return Processors()


@pytest.fixture
def pair(place, processors):
    """An agent, and a later one that has just been told of it."""
    earlier = place.agent(processors=processors)
    later = place.agent("later", processors=processors)
    return earlier, later


def wait(place, seconds=MOMENT_SECONDS):
    place.clock.advance(timedelta(seconds=seconds))


def holds(place, agent):
    """Whether anything runs there."""
    return bool(place.executors[["one", "later", "third"].index(agent.name)].present)


def test_the_earlier_one_takes_what_is_there(place, pair):
    earlier, later = pair
    place.start_run("a")
    later.step(0.0)
    assert place.tasks("scheduled") == ["a"]
    earlier.step(0.0)
    assert holds(place, earlier) and not holds(place, later)


def test_both_take_tasks_while_the_processors_are_idle(place, pair, processors):
    _, later = pair
    processors.share = 0.9
    place.start_run("a")
    later.step(0.0)
    assert holds(place, later)


def test_what_the_earlier_one_has_no_slots_for_is_taken_after_a_moment(place, pair):
    earlier, later = pair
    place.start_run("a", "b", "c")
    place.seconds = dict.fromkeys("abc", LONG)
    earlier.step(0.0)
    later.step(0.0)
    assert len(place.tasks("running")) == SLOTS
    wait(place, MOMENT_SECONDS + 0.001)
    later.step(0.0)
    assert place.tasks("running") == ["a", "b", "c"]
    assert holds(place, later)


def test_what_the_earlier_one_leaves_because_it_is_frozen_is_taken_after_a_moment(place, pair):
    _, later = pair
    place.start_run("a")
    later.step(0.0)
    wait(place, MOMENT_SECONDS + 0.001)
    later.step(0.0)
    assert holds(place, later)


def test_tasks_without_code_are_left_and_taken_likewise(place, pair):
    _, later = pair
    place.start_run("a", isolation="inline")
    later.step(0.0)
    assert place.tasks("scheduled") == ["a"]
    wait(place, MOMENT_SECONDS + 0.001)
    later.step(0.0)
    assert place.tasks("running") == ["a"]


def test_when_the_earlier_one_is_gone_the_later_one_goes_on(place, pair):
    earlier, later = pair
    place.start_run("a")
    later.step(0.0)
    place.store.transact(lambda tx: give_up(tx, earlier.id, place.now))
    wait(place)
    later.step(0.0)
    assert holds(place, later)


def test_whoever_gives_way_still_tells_how_its_tries_ended_and_leaves_what_follows(place, pair, processors):
    earlier, later = pair
    processors.share = 0.9
    place.seconds = dict.fromkeys("ab", 10.0)
    place.start_run("a", "b")
    later.step(0.0)
    processors.share = 0.0
    wait(place, 10.0)
    place.start_run("c", name="empty", isolation="inline")
    assert later.step(0.0) == 2
    assert place.tasks("scheduled") == ["c"]
    place.start_run("d", name="next")
    later.step(0.0)
    earlier.step(0.0)
    assert holds(place, earlier)


def test_news_that_come_meanwhile_are_not_forgotten(place, pair, processors):
    _, later = pair
    processors.share = 0.9
    place.seconds = {"a": 10.0}
    place.start_run("a")
    later.step(0.0)
    processors.share = 0.0
    wait(place)
    later.step(0.0)
    place.start_run("b", name="empty", isolation="inline")
    later.step(0.0)
    assert place.tasks("scheduled") == ["b"]
    wait(place, 10.0)
    assert later.step(0.0) == 1
    assert place.tasks("running") == ["b"], "taken beside the result"


def test_it_wakes_up_to_look_again_and_asks_for_nothing_before(place, pair, monkeypatch):
    _, later = pair
    later.step(0.0)
    waits = []
    monkeypatch.setattr(place.executors[1], "poll", lambda seconds: waits.append(seconds) or [])
    before = place.store.database.statements
    place.start_run("a")
    started = place.store.database.statements
    later.step(60.0)
    assert waits == [pytest.approx(MOMENT_SECONDS)]
    assert place.store.database.statements == started > before


def test_agents_of_other_queues_and_earlier_ones_do_not_give_way(place, pair, processors):
    earlier, _ = pair
    third = place.agent("third", processors=processors, queues=("default", "heavy"))
    place.start_run("a")
    third.step(0.0)
    assert holds(place, third)
    place.start_run("b", name="other")
    earlier.renew()
    earlier.step(0.0)
    assert holds(place, earlier)


def test_an_agent_for_one_run_does_not_give_way(place, processors):
    place.start_run("a")
    place.agent(processors=processors)
    own = place.agent("later", processors=processors, attempt_id=place.attempt_id)
    own.step(0.0)
    assert holds(place, own)


# ---- the machine ---------------------------------------------------------------------------------------------------


def test_the_idle_share_is_that_since_it_was_asked_last(tmp_path):
    stat = tmp_path / "stat"
    stat.write_text("cpu  100 0 50 800 50 0 0 0 7 7\ncpu0 1 2 3 4 5 6 7 8 9 10\n")
    processors = MachineProcessors(stat)
    stat.write_text("cpu  160 5 60 815 55 1 2 2 9 9\n")
    assert processors.idle_share() == pytest.approx(0.2)
    stat.write_text("cpu  160 5 60 825 55 1 2 2 9 9\n")
    assert processors.idle_share() == 1.0
    assert processors.idle_share() == 1.0, "no time has passed"


def test_a_machine_that_does_not_tell_counts_as_idle(tmp_path):
    assert MachineProcessors(tmp_path / "none").idle_share() == 1.0


def test_this_machine_tells():
    processors = MachineProcessors()
    assert processors.count >= 1
    assert 0.0 <= processors.idle_share() <= 1.0
