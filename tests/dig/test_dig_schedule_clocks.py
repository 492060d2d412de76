"""Schedules of `.dig` files on the days on which clocks change, in every zone that changes them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from headrace.authoring.dig.scheduling import compile_schedule
from headrace.definition import Place
from headrace.timetable import timetable_for

LOS_ANGELES = "America/Los_Angeles"
ZONES = (
    LOS_ANGELES, "Europe/London", "Europe/Berlin", "Australia/Lord_Howe", "America/Sao_Paulo", "Africa/Casablanca",
    "Asia/Tokyo", "Pacific/Apia", "America/St_Johns", "Asia/Tehran", "UTC",
)  # fmt: skip
KINDS = (
    {"hourly>": "30:10"}, {"daily>": "10:00:00"}, {"weekly>": "Sun,02:30:00"}, {"monthly>": "L,23:59:59"},
    {"minutes_interval>": 40}, {"cron>": "30 1-3 * * *"}, {"cron>": "15 2 * * Sun", "delay": 5400},
    {"cron>": "0 2 * * * | 30 2 * * *"}, {"seconds_interval>": 600, "delay": 30},
)  # fmt: skip


def timetable(section, zone):
    return timetable_for(compile_schedule(section, zone, Place()), zone)


def changes(zone):
    """The hours in which a zone changed its clocks in some years."""
    found, moment = [], datetime(2010, 1, 1, tzinfo=UTC)
    while moment.year < 2028:
        following = moment + timedelta(days=7)
        if moment.astimezone(ZoneInfo(zone)).utcoffset() != following.astimezone(ZoneInfo(zone)).utcoffset():
            low, high = moment, following
            while high - low > timedelta(minutes=15):
                middle = low + (high - low) / 2
                same = middle.astimezone(ZoneInfo(zone)).utcoffset() == low.astimezone(ZoneInfo(zone)).utcoffset()
                low, high = (middle, high) if same else (low, middle)
            found.append(high)
        moment = following
    return found or [datetime(2020, 1, 1, tzinfo=UTC)]


CHANGES = {zone: changes(zone) for zone in ZONES}


@st.composite
def moments(draw):
    zone = draw(st.sampled_from(ZONES))
    around = timedelta(seconds=draw(st.integers(-100_000, 100_000)))
    return zone, draw(st.sampled_from(CHANGES[zone])) + around


@settings(max_examples=150, deadline=None)
@given(moments(), st.sampled_from(KINDS))
@example((LOS_ANGELES, datetime(2016, 3, 13, 9, 30, tzinfo=UTC)), {"hourly>": "00:00"})
def test_slots_go_on_in_order_around_every_change_of_clocks(moment, section):
    zone, now = moment
    table = timetable(section, zone)
    slot = table.first(now)
    assert slot.run_at >= now, "the first slot is the first one that is still to come"
    before = table.previous(slot)
    assert before.logical_time < slot.logical_time and before.run_at < now
    delay = slot.run_at - slot.logical_time
    for _ in range(6):
        following = table.following(slot)
        assert following.logical_time > slot.logical_time
        assert following.run_at - following.logical_time == delay, "a delay is elapsed time"
        assert table.previous(following) == slot, "nothing lies between two slots, in either direction"
        slot = following


@settings(max_examples=100, deadline=None)
@given(moments())
def test_every_day_has_one_daily_session(moment):
    zone, now = moment
    table = timetable({"daily>": "07:00:00"}, zone)
    slot = table.first(now)
    for _ in range(4):
        following = table.following(slot)
        day, next_day = (one.logical_time.astimezone(ZoneInfo(zone)).date() for one in (slot, following))
        # A zone that skipped a whole day has no midnight of it.
        assert next_day == day + timedelta(days=1) or zone == "Pacific/Apia"
        slot = following


def local(instant, zone):
    return instant.astimezone(ZoneInfo(zone)).isoformat()


def test_delay_of_a_daily_session_is_elapsed_time():
    table = timetable({"daily>": "10:00:00"}, LOS_ANGELES)
    slot = table.first(datetime(2016, 3, 13, 0, 0, tzinfo=ZoneInfo(LOS_ANGELES)))
    assert local(slot.logical_time, LOS_ANGELES) == "2016-03-13T00:00:00-08:00"
    assert local(slot.run_at, LOS_ANGELES) == "2016-03-13T11:00:00-07:00"


def test_hour_that_is_skipped_has_no_session():
    table = timetable({"hourly>": "00:00"}, LOS_ANGELES)
    slot = table.first(datetime(2016, 3, 13, 1, 0, tzinfo=ZoneInfo(LOS_ANGELES)))
    assert local(slot.logical_time, LOS_ANGELES) == "2016-03-13T01:00:00-08:00"
    assert local(table.following(slot).logical_time, LOS_ANGELES) == "2016-03-13T03:00:00-07:00"


def test_hour_that_is_repeated_has_one_session_in_standard_time():
    table = timetable({"cron>": "30 1 * * *"}, LOS_ANGELES)
    slot = table.first(datetime(2016, 11, 6, 0, 0, tzinfo=ZoneInfo(LOS_ANGELES)))
    assert local(slot.logical_time, LOS_ANGELES) == "2016-11-06T01:30:00-08:00"


@pytest.mark.parametrize(
    ("pushed", "session"), [("09:34:00", "2026-02-03"), ("10:00:00", "2026-02-03"), ("10:00:01", "2026-02-04")]
)
def test_first_session_is_chosen_by_when_it_runs(pushed, session):
    table = timetable({"daily>": "10:00:00"}, "UTC")
    slot = table.first(datetime.fromisoformat(f"2026-02-03T{pushed}+00:00"))
    assert slot.logical_time == datetime.fromisoformat(f"{session}T00:00:00+00:00")


def test_session_may_run_on_the_day_after():
    table = timetable({"daily>": "25:30:00", "start": "2026-02-03"}, "UTC")
    slot = table.first(datetime(2026, 2, 3, 1, tzinfo=UTC))
    assert slot.logical_time == datetime(2026, 2, 2, tzinfo=UTC), "it is still to run"
    assert slot.run_at == datetime(2026, 2, 3, 1, 30, tzinfo=UTC)
    assert table.following(slot).logical_time == datetime(2026, 2, 3, tzinfo=UTC)
    late = timetable({"daily>": "72:00:00"}, "UTC").due(slot, datetime(2026, 2, 6, tzinfo=UTC))
    assert [one.logical_time.day for one in late.slots] == [3]
    assert late.next.run_at == datetime(2026, 2, 7, tzinfo=UTC)


def test_interval_of_minutes_restarts_each_hour():
    table = timetable({"minutes_interval>": 40}, "UTC")
    slot = table.first(datetime(2026, 2, 3, 4, 1, tzinfo=UTC))
    times = [slot := table.following(slot) for _ in range(3)]
    assert [one.logical_time.strftime("%H:%M") for one in times] == ["05:00", "05:40", "06:00"]


def test_interval_of_seconds_counts_from_1970():
    table = timetable({"seconds_interval>": 7}, "UTC")
    slot = table.first(datetime(1970, 1, 1, 0, 0, 8, tzinfo=UTC))
    assert slot.logical_time == datetime(1970, 1, 1, 0, 0, 14, tzinfo=UTC)


def test_both_days_of_a_cron_expression_must_match():
    table = timetable({"cron>": "0 0 13 * Fri"}, "UTC")
    assert table.first(datetime(2026, 1, 1, tzinfo=UTC)).logical_time == datetime(2026, 2, 13, tzinfo=UTC)


def test_bounds_are_compared_with_when_a_run_is_due():
    section = {"cron>": "0 23 * * *", "delay": 7200, "start": "2026-02-04", "end": "2026-02-05"}
    table = timetable(section, "UTC")
    slot = table.first(datetime(2026, 2, 3, 4, tzinfo=UTC))
    assert slot.logical_time == datetime(2026, 2, 3, 23, tzinfo=UTC), "its run is due on the first day"
    second = table.following(slot)
    assert second.logical_time == datetime(2026, 2, 4, 23, tzinfo=UTC)
    assert table.following(second) is None, "its run would be due after the last day"


SPRING, AUTUMN = "2016-03-13", "2016-11-06"
"""The nights in which Los Angeles jumps over two o'clock, and has one o'clock twice."""


@pytest.mark.parametrize(
    ("section", "day", "sessions"),
    [
        ({"hourly>": "10:00"}, SPRING, ["00:00-08:00", "01:00-08:00", "03:00-07:00", "04:00-07:00"]),
        (
            {"minutes_interval>": 30},
            SPRING,
            ["00:00-08:00", "00:30-08:00", "01:00-08:00", "01:30-08:00", "03:00-07:00"],
        ),
        (
            {"seconds_interval>": 1800},
            SPRING,
            ["00:00-08:00", "00:30-08:00", "01:00-08:00", "01:30-08:00", "03:00-07:00"],
        ),
        (
            {"seconds_interval>": 1800},
            AUTUMN,
            ["00:00-07:00", "00:30-07:00", "01:00-07:00", "01:30-07:00", "01:00-08:00"],
        ),
        ({"cron>": "30 * * * *"}, SPRING, ["00:30-08:00", "01:30-08:00", "03:30-07:00", "04:30-07:00"]),
        ({"daily>": "02:30:00"}, SPRING, ["00:00-08:00", "00:00-07:00"]),
        ({"daily>": "01:30:00"}, AUTUMN, ["00:00-07:00", "00:00-08:00"]),
        ({"weekly>": "Sun,02:30:00"}, SPRING, ["00:00-08:00", "00:00-07:00"]),
        ({"weekly>": "Sun,01:30:00"}, AUTUMN, ["00:00-07:00", "00:00-08:00"]),
        ({"monthly>": "13,02:30:00"}, SPRING, ["00:00-08:00", "00:00-07:00"]),
        ({"monthly>": "6,01:30:00"}, AUTUMN, ["00:00-07:00", "00:00-08:00"]),
    ],
    ids=str,
)
def test_sessions_of_the_nights_in_which_clocks_change(section, day, sessions):
    table = timetable(section, LOS_ANGELES)
    slot = table.first(datetime.fromisoformat(f"{day}T00:00:00").replace(tzinfo=ZoneInfo(LOS_ANGELES)))
    found = [slot]
    while len(found) < len(sessions):
        found.append(table.following(found[-1]))
    shown = [one.logical_time.astimezone(ZoneInfo(LOS_ANGELES)) for one in found]
    assert shown[0].date().isoformat() == day
    assert [f"{one:%H:%M}{one.isoformat()[-6:]}" for one in shown] == sessions


def test_hourly_sessions_have_the_repeated_hour_once_in_standard_time():
    table = timetable({"hourly>": "00:00"}, LOS_ANGELES)
    slot = table.first(datetime(2016, 11, 6, 0, 0, tzinfo=ZoneInfo(LOS_ANGELES)))
    following = [slot := table.following(slot) for _ in range(2)]
    assert [local(one.logical_time, LOS_ANGELES)[11:] for one in following] == ["01:00:00-08:00", "02:00:00-08:00"]
