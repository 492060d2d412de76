"""Months, lists, back to back, periods that end when a run is due; and clock changes all over the world."""

from __future__ import annotations

import itertools
import random
import zoneinfo
from datetime import UTC, datetime, timedelta

import pytest

from headrace.definition import Schedule
from headrace.errors import DefinitionError
from headrace.timetable import is_met, missing_keys, timetable_for

NOW = datetime(2026, 5, 10, 12, tzinfo=UTC)


def at(text):
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def table(kind, spec=None, **fields):
    return timetable_for(Schedule(type=kind, spec=spec or {}, **fields), "UTC")


def days(slots, form="%m-%d"):
    return [slot.logical_time.strftime(form) for slot in slots]


def test_steps_of_months_come_from_the_step_before():
    monthly = table("interval", {"months": 1}, start_at="2026-01-31T00:00:00Z", catch_up="all")
    due = monthly.due(None, NOW)
    assert days(due.slots) == ["01-31", "02-28", "03-28", "04-28"]
    assert due.next.logical_time == at("2026-05-28")
    assert monthly.previous(due.slots[0]) is None


def test_months_and_days_together_with_periods():
    table_ = table("interval", {"months": 1, "seconds": 86_400, "intervals": True}, start_at="2026-01-01T00:00:00Z")
    slot = table_.first(NOW)
    assert (slot.interval_start, slot.interval_end) == (at("2026-04-04"), at("2026-05-05"))
    assert table_.manual(NOW).interval_end == at("2026-05-05")


def test_listed_times_are_run_once_each():
    instants = ["2026-05-10T13:00:00Z", "2026-05-09T00:00:00Z", "2026-05-10T13:00:00Z"]
    listed = table("events", {"instants": instants}, catch_up="all", start_at="2026-01-01T00:00:00Z")
    assert days(listed.due(None, NOW).slots) == ["05-09"]
    assert listed.following(listed.slot_at(at("2026-05-10T13:00"))) is None


def test_without_catching_up_listed_times_of_the_past_are_left_out():
    listed = table("events", {"instants": ["2026-05-09T00:00:00Z", "2026-05-10T13:00:00Z"]})
    assert listed.first(NOW).logical_time == at("2026-05-10T13:00")
    assert table("events", {"instants": []}).first(NOW) is None


@pytest.mark.parametrize(("when", "expected"), [("2026-05-10T12:00", "05-09"), ("2026-01-01T00:00", "05-09")])
def test_a_run_by_hand_may_be_for_the_last_listed_time(when, expected):
    listed = table("events", {"instants": ["2026-05-09T00:00:00Z", "2026-05-11T00:00:00Z"], "manual_on_tick": True})
    assert listed.manual(at(when)).interval_start.strftime("%m-%d") == expected


def test_period_that_ends_when_the_run_is_due():
    late = table("cron", {"expression": "0 3 * * *", "lookback_seconds": 3600}, start_at="2026-05-08T00:00:00Z")
    slot = late.first(NOW)
    assert (slot.logical_time, slot.interval_end, slot.run_at) == (
        at("2026-05-10T02:00"), at("2026-05-10T03:00"), at("2026-05-10T03:00"),
    )  # fmt: skip
    assert late.following(slot).logical_time == at("2026-05-11T02:00")
    assert late.previous(slot).logical_time == at("2026-05-09T02:00")
    assert late.slot_at(slot.logical_time) == slot
    manual = late.manual(NOW)
    assert (manual.interval_start, manual.interval_end) == (NOW - timedelta(hours=1), NOW)


def test_schedule_without_a_start_begins_as_it_is_told():
    def first(**spec):
        return table("cron", {"expression": "0 0 * * *", **spec}).first(NOW).logical_time.day

    assert (first(), first(starts_at_once=True)) == (11, 10)
    assert (first(first_within_seconds=13 * 3600), first(first_within_seconds=11 * 3600)) == (10, 11)


def test_back_to_back_runs_are_for_the_time_since_the_one_before():
    endless = table("continuous", end_at="2026-05-10T12:30:00Z")
    first = endless.due(None, NOW)
    assert [(slot.interval_start, slot.interval_end) for slot in first.slots] == [(NOW, NOW)]
    later = NOW + timedelta(minutes=7)
    second = endless.due_from(first.next, later)
    assert [(slot.logical_time, slot.interval_end, slot.run_at) for slot in second.slots] == [(NOW, later, later)]
    assert endless.due_from(second.next, NOW + timedelta(hours=1)) == ((), None)


def test_only_schedules_with_times_can_be_filled_in():
    kinds = {kind: table(kind).is_periodic for kind in ("once", "continuous", "custom")}
    assert kinds == {"once": False, "continuous": False, "custom": False}
    hourly = table("cron", {"expression": "0 * * * *"}, start_at="2030-01-01T00:00:00Z")
    slots = hourly.slots_from(at("2026-05-10T00:30"))
    assert [next(slots).logical_time.hour for _ in range(2)] == [1, 2]


@pytest.mark.parametrize("when", [None, {}, {"asset": 5}, {"all": []}, {"none": ["a"]}, {"any": [{"asset": ""}]}])
def test_conditions_that_make_no_sense_are_refused(when):
    with pytest.raises(DefinitionError, match="expected the schedule to name assets"):
        table("assets", {"when": when})


def test_conditions_hold_when_enough_events_have_come():
    condition = {"all": [{"asset": "a"}, {"any": [{"asset": "b"}, {"alias": "c"}]}]}
    assert not is_met(condition, {"asset:a"})
    assert not is_met(condition, {"asset:b", "alias:c"})
    assert is_met(condition, {"asset:a", "alias:c"})
    assert missing_keys(condition, {"asset:b"}) == ["asset:a", "alias:c"]


# ---- clock changes -------------------------------------------------------------------------------------------------


def transitions(name, since=2015, until=2027):
    """Instants around which a zone moves its clocks, to the hour."""
    zone = zoneinfo.ZoneInfo(name)
    found, before = [], None
    moment = datetime(since, 1, 1, tzinfo=UTC)
    while moment.year < until:
        offset = moment.astimezone(zone).utcoffset()
        if before is not None and offset != before:
            found.append(moment)
        before, moment = offset, moment + timedelta(days=5)
    return found


def samples(count, seed=7):
    """Some zones that move their clocks, each with one of the times when they did."""
    chooser = random.Random(seed)
    names = sorted(zoneinfo.available_timezones() - {"localtime", "Factory"})
    chooser.shuffle(names)
    found = []
    for name in names:
        changes = transitions(name)
        if changes:
            found.append((name, chooser.choice(changes)))
        if len(found) == count:
            break
    return found


@pytest.mark.parametrize(("zone", "change"), samples(10))
@pytest.mark.parametrize("expression", ["0 * * * *", "30 2 * * *", "*/20 * * * *", "15 0,1,2,3 * * *"])
def test_nothing_is_lost_or_doubled_where_clocks_change(zone, change, expression):
    timetable = timetable_for(Schedule(type="cron", spec={"expression": expression}), zone)
    start, end = change - timedelta(days=6), change + timedelta(days=1)
    forward = []
    for slot in timetable.slots_from(start):
        if slot.logical_time > end:
            break
        forward.append(slot.logical_time)
    backward, slot = [], timetable.slot_at(end + timedelta(microseconds=1))
    while (slot := timetable.previous(slot)) is not None and slot.logical_time >= start:
        backward.append(slot.logical_time)
    assert forward == backward[::-1], "both directions agree"
    assert forward == sorted(set(forward))
    if expression in ("0 * * * *", "*/20 * * * *"):
        step = timedelta(hours=1) if expression == "0 * * * *" else timedelta(minutes=20)
        gaps = {later - earlier for earlier, later in itertools.pairwise(forward)}
        # Zones that move by half an hour, or by a whole day, have one other gap.
        assert min(gaps) > timedelta(0) and max(gaps) <= step + timedelta(hours=1), gaps
    else:
        local = [moment.astimezone(zoneinfo.ZoneInfo(zone)).date() for moment in forward]
        per_day = 1 if expression == "30 2 * * *" else 4
        counts = {day: local.count(day) for day in set(local[per_day:-per_day])}
        assert set(counts.values()) <= {per_day - 1, per_day} and sum(counts.values()) >= per_day * (len(counts) - 1)
