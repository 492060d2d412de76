"""Which slot is first, which follow, and what is started after a pause."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.definition import Schedule
from headrace.timetable import timetable_for


def at(text):
    moment = datetime.fromisoformat(text)
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)


def timetable(expression=None, timezone="UTC", seconds=None, type=None, semantics="airflow", spec=None, **fields):
    spec = {"semantics": semantics, **(spec or {})}
    if expression is not None:
        spec["expression"] = expression
    if seconds is not None:
        spec["seconds"] = seconds
    type = type or ("cron" if expression else "interval")
    return timetable_for(Schedule(type=type, spec=spec, **fields), timezone)


def shown(slot):
    """`logical → run_at`, short."""
    return None if slot is None else f"{slot.logical_time:%m-%d %H:%M} → {slot.run_at:%m-%d %H:%M}"


def started(due):
    return [shown(slot) for slot in due.slots]


def test_trigger_runs_at_its_logical_time_with_an_empty_interval():
    slot = timetable("0 3 * * *", start_at="2026-02-01T00:00Z", catch_up="all").first(at("2026-02-10"))
    assert slot.logical_time == slot.run_at == slot.interval_start == slot.interval_end == at("2026-02-01T03:00")


def test_interval_runs_when_it_is_over():
    slot = timetable("@daily", spec={"intervals": True}, start_at="2026-02-01T12:00Z", catch_up="all").first(
        at("2026-02-10")
    )
    assert (slot.logical_time, slot.run_at) == (at("2026-02-02"), at("2026-02-03"))
    assert (slot.interval_start, slot.interval_end) == (at("2026-02-02"), at("2026-02-03"))


def test_interval_over_a_change_of_clocks_lasts_23_hours():
    days = timetable("@daily", "America/New_York", spec={"intervals": True}, start_at="2026-03-08", catch_up="all")
    slot = days.first(at("2026-03-10"))
    assert slot.interval_end - slot.interval_start == timedelta(hours=23)


def test_without_catch_up_only_the_newest_due_slot_is_first():
    days = timetable("0 3 * * *", start_at="2026-02-01T00:00Z")
    assert shown(days.first(at("2026-02-10T12:00"))) == "02-10 03:00 → 02-10 03:00"


def test_start_in_the_future_is_waited_for():
    for catch_up in ("all", "latest"):
        days = timetable("0 3 * * *", start_at="2026-02-20T00:00Z", catch_up=catch_up)
        assert shown(days.first(at("2026-02-10T12:00"))) == "02-20 03:00 → 02-20 03:00"


def test_start_and_end_are_included():
    days = timetable("0 3 * * *", start_at="2026-02-01T03:00Z", end_at="2026-02-02T03:00Z", catch_up="all")
    first = days.first(at("2026-02-10"))
    second = days.following(first)
    assert [first.logical_time, second.logical_time] == [at("2026-02-01T03:00"), at("2026-02-02T03:00")]
    assert days.following(second) is None


def test_ended_schedule_starts_nothing_new():
    days = timetable("0 3 * * *", start_at="2026-02-01T00:00Z", end_at="2026-02-05T00:00Z")
    assert days.first(at("2026-02-10")) is None


@pytest.mark.parametrize(
    ("now", "first"),
    [
        ("2026-02-10T04:00", "02-10 03:00 → 02-10 03:00"),
        ("2026-02-10T05:23", "02-10 03:00 → 02-10 03:00"),
        ("2026-02-10T05:25", "02-11 03:00 → 02-11 03:00"),
    ],
)
def test_without_start_a_slot_missed_by_a_tenth_of_the_period_runs_at_once(now, first):
    assert shown(timetable("0 3 * * *").first(at(now))) == first


def test_without_start_five_minutes_are_always_forgiven():
    assert shown(timetable("*/10 * * * *").first(at("2026-02-10T04:04"))) == "02-10 04:00 → 02-10 04:00"
    assert shown(timetable("*/10 * * * *").first(at("2026-02-10T04:06"))) == "02-10 04:10 → 02-10 04:10"


def test_without_start_the_last_complete_interval_is_first():
    assert (
        shown(timetable("@daily", spec={"intervals": True}).first(at("2026-02-10T12:00")))
        == "02-09 00:00 → 02-10 00:00"
    )


def test_catch_up_starts_every_missed_slot_up_to_the_limit():
    hours = timetable("@hourly", start_at="2026-02-01T00:00Z", catch_up="all")
    due = hours.due(None, at("2026-02-01T05:30"), limit=4)
    assert started(due) == [f"02-01 0{hour}:00 → 02-01 0{hour}:00" for hour in range(4)]
    rest = hours.due_from(due.next, at("2026-02-01T05:30"), limit=4)
    assert len(rest.slots) == 2
    assert shown(rest.next) == "02-01 06:00 → 02-01 06:00"


def test_without_catch_up_only_the_newest_missed_slot_starts():
    hours = timetable("@hourly", start_at="2026-02-01T00:00Z")
    due = hours.due(hours.slot_at(at("2026-02-01T00:00")), at("2026-02-03T05:30"))
    assert started(due) == ["02-03 05:00 → 02-03 05:00"]
    assert shown(due.next) == "02-03 06:00 → 02-03 06:00"


def test_newest_missed_slot_may_be_due_this_very_moment():
    hours = timetable("@hourly", start_at="2026-02-01T00:00Z")
    due = hours.due(hours.slot_at(at("2026-02-01T00:00")), at("2026-02-03T05:00"))
    assert started(due) == ["02-03 05:00 → 02-03 05:00"]


def test_newest_missed_slot_lies_within_the_end():
    hours = timetable("@hourly", start_at="2026-02-01T00:00Z", end_at="2026-02-01T03:30Z")
    due = hours.due(hours.slot_at(at("2026-02-01T00:00")), at("2026-02-03T05:30"))
    assert started(due) == ["02-01 03:00 → 02-01 03:00"]
    assert due.next is None


def test_nothing_is_due_before_its_time():
    hours = timetable("@hourly")
    last = hours.slot_at(at("2026-02-01T00:00"))
    due = hours.due(last, at("2026-02-01T00:59:59"))
    assert due == ((), hours.following(last))
    assert started(hours.due(last, at("2026-02-01T01:00"))) == ["02-01 01:00 → 02-01 01:00"]


def test_slot_planned_when_the_workflow_was_first_seen_is_not_lost():
    days = timetable("0 0 * * *", semantics="digdag", catch_up="all")
    due = days.due(None, at("2026-02-02T00:00:01"), seen_at=at("2026-02-01T12:00"))
    assert started(due) == ["02-02 00:00 → 02-02 00:00"]


def test_too_late_slots_are_left_out():
    hours = timetable("@hourly", catch_up="all", skip_delayed_seconds=7200)
    last = hours.slot_at(at("2026-02-01T00:00"))
    due = hours.due(last, at("2026-02-01T10:00"))
    assert started(due) == [f"02-01 {hour:02}:00 → 02-01 {hour:02}:00" for hour in (8, 9, 10)]
    few = timetable("@hourly", catch_up="all", skip_delayed_seconds=60).due(last, at("2026-02-01T10:30"))
    assert few.slots == ()
    assert shown(few.next) == "02-01 11:00 → 02-01 11:00"


def test_a_year_of_missed_minutes_is_skipped_at_once():
    minutes = timetable("* * * * *", catch_up="all", skip_delayed_seconds=60)
    assert len(minutes.due(minutes.slot_at(at("2025-02-01")), at("2026-02-01")).slots) == 2


def test_manual_run_gets_the_last_complete_interval():
    slot = timetable("@daily", spec={"intervals": True}).manual(at("2026-02-10T12:00"))
    assert slot.logical_time == slot.run_at == at("2026-02-10T12:00")
    assert (slot.interval_start, slot.interval_end) == (at("2026-02-09"), at("2026-02-10"))
    trigger = timetable("@daily").manual(at("2026-02-10T12:00"))
    assert trigger.interval_start == trigger.interval_end == at("2026-02-10T12:00")


def test_digdag_first_slot_is_chosen_by_its_run_time():
    daily = timetable("0 0 * * *", semantics="digdag", spec={"delay_seconds": 36_000}, catch_up="all")
    assert shown(daily.first(at("2026-02-10T09:34"))) == "02-10 00:00 → 02-10 10:00"
    assert shown(daily.first(at("2026-02-10T10:00"))) == "02-10 00:00 → 02-10 10:00"
    assert shown(daily.first(at("2026-02-10T10:00:01"))) == "02-11 00:00 → 02-11 10:00"


def test_digdag_delay_is_elapsed_time():
    daily = timetable(
        "0 0 * * *", "America/Los_Angeles", semantics="digdag", spec={"delay_seconds": 36_000}, catch_up="all"
    )
    slot = daily.first(at("2016-03-13T03:00-08:00"))
    assert slot.logical_time == at("2016-03-13T00:00-08:00")
    assert slot.run_at == at("2016-03-13T11:00-07:00")


def test_digdag_starts_and_ends_on_days():
    daily = timetable(
        "0 0 * * *",
        semantics="digdag",
        spec={"delay_seconds": 36_000},
        start_at="2026-02-05T00:00Z",
        end_at="2026-02-06T23:59:59Z",
    )
    first = daily.first(at("2026-01-01"))
    second = daily.following(first)
    assert [shown(first), shown(second)] == ["02-05 00:00 → 02-05 10:00", "02-06 00:00 → 02-06 10:00"]
    assert daily.following(second) is None


def test_digdag_end_counts_when_the_run_is_due():
    late = timetable("0 23 * * *", semantics="digdag", spec={"delay_seconds": 7200}, end_at="2026-02-06T23:59:59Z")
    assert late.first(at("2026-02-06T02:00")) is None


def test_previous_ignores_the_start():
    irregular = timetable("0 9,10,11 * * *", semantics="digdag", start_at="2026-02-05T00:00Z")
    assert shown(irregular.previous(irregular.slot_at(at("2026-02-05T09:00")))) == "02-04 11:00 → 02-04 11:00"


def test_interval_steps_from_its_start():
    steps = timetable(seconds=5400, start_at="2026-02-01T00:10Z", catch_up="all")
    due = steps.due(None, at("2026-02-01T03:30"))
    assert started(due) == ["02-01 00:10 → 02-01 00:10", "02-01 01:40 → 02-01 01:40", "02-01 03:10 → 02-01 03:10"]


def test_digdag_interval_steps_from_the_epoch():
    steps = timetable(seconds=7, semantics="digdag", start_at="2026-02-01T00:00Z")
    assert int(steps.first(at("2026-02-03")).logical_time.timestamp()) % 7 == 0


def test_once_runs_once():
    once = timetable(type="once", start_at="2026-02-01T00:00Z")
    due = once.due(None, at("2026-02-10"))
    assert started(due) == ["02-01 00:00 → 02-01 00:00"]
    assert due.next is None
    assert once.due(due.slots[0], at("2026-02-11")) == ((), None)


def test_once_without_start_is_for_now_and_in_the_future_waits():
    assert timetable(type="once").first(at("2026-02-10")).logical_time == at("2026-02-10")
    later = timetable(type="once", start_at="2026-03-01T00:00Z").due(None, at("2026-02-10"))
    assert later.slots == ()
    assert later.next.run_at == at("2026-03-01")


instants = st.datetimes(datetime(2020, 1, 1), datetime(2030, 1, 1), timezones=st.just(UTC))


@given(
    st.sampled_from(["@daily", "*/7 * * * *", "0 2 * * 1", "30 1 * * *"]),
    st.sampled_from(["America/New_York", "Asia/Tokyo"]),
    st.booleans(),
    st.sampled_from(["all", "latest"]),
    st.sampled_from([None, 600]),
    instants,
    st.lists(st.integers(1, 200_000), min_size=1, max_size=5),
)
def test_looking_often_or_seldom_starts_each_slot_once_and_in_order(
    expression, zone, intervals, catch_up, late, now, pauses
):
    table = timetable(expression, zone, spec={"intervals": intervals}, catch_up=catch_up, skip_delayed_seconds=late)
    planned, slots = table.first(now), []
    for pause in pauses:
        now += timedelta(seconds=pause)
        due = table.due_from(planned, now, limit=3)
        slots += due.slots
        assert all(slot.run_at <= now for slot in due.slots)
        planned = due.next
    times = [slot.logical_time for slot in slots]
    assert times == sorted(set(times))
    assert not times or planned.logical_time > times[-1]
    if catch_up == "all" and late is None and len(slots) > 1:
        assert all(table.following(slot) == other for slot, other in pairwise(slots))


def test_zone_may_be_a_fixed_offset():
    slot = timetable("0 0 * * *", "-03:30", start_at="2026-02-01T00:00").first(at("2026-01-01"))
    assert slot.logical_time == at("2026-02-01T03:30")
