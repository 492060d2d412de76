"""On which instants a cron schedule ticks: days of month and week, and the days on which clocks change."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.definition import Schedule
from headrace.timetable import timetable_for
from headrace.timetable.cron import parse_cron
from headrace.timetable.ticks import CronTicks, UnionTicks

# Each has another habit: an hour at 2, an hour at 1 UTC, half an hour, none, a whole day skipped, an hour at midnight.
ZONES = (
    "America/New_York",
    "America/Los_Angeles",
    "Europe/London",
    "Australia/Lord_Howe",
    "Asia/Tokyo",
    "Pacific/Apia",
    "America/Sao_Paulo",
    "Africa/Casablanca",
    "UTC",
)


def ticks(expression, zone, dialect="airflow"):
    timetable = timetable_for(Schedule(type="cron", spec={"expression": expression, "semantics": dialect}), zone)
    return timetable.ticks


def local_ticks(expression, zone, start, count, dialect="airflow"):
    """The first ticks from a local time on, as local ISO times with offset."""
    row = ticks(expression, zone, dialect)
    moment = datetime.fromisoformat(start).replace(tzinfo=ZoneInfo(zone)) - timedelta(seconds=1)
    found = []
    for _ in range(count):
        moment = row.after(moment)
        found.append(moment.astimezone(ZoneInfo(zone)).isoformat(timespec="minutes"))
    return found


def test_skipped_local_time_moves_forward_by_what_was_skipped():
    assert local_ticks("30 2 * * *", "America/New_York", "2026-03-07T12:00", 2) == [
        "2026-03-08T03:30-04:00",
        "2026-03-09T02:30-04:00",
    ]


def test_repeated_local_time_runs_once_at_its_second_occurrence():
    assert local_ticks("30 1 * * *", "America/New_York", "2026-10-31T12:00", 2) == [
        "2026-11-01T01:30-05:00",
        "2026-11-02T01:30-05:00",
    ]


def test_skipped_time_may_come_after_a_later_wall_time():
    assert local_ticks("0,30 2,3 * * *", "America/New_York", "2026-03-08T00:00", 3) == [
        "2026-03-08T03:00-04:00",
        "2026-03-08T03:30-04:00",
        "2026-03-09T02:00-04:00",
    ]
    assert local_ticks("30 2 8 * *|0 3 8 * *", "America/New_York", "2026-03-08T00:00", 2) == [
        "2026-03-08T03:00-04:00",
        "2026-03-08T03:30-04:00",
    ]


def test_every_hour_loses_and_repeats_none_when_clocks_change():
    assert local_ticks("0 * * * *", "America/New_York", "2026-03-08T01:00", 3) == [
        "2026-03-08T01:00-05:00",
        "2026-03-08T03:00-04:00",
        "2026-03-08T04:00-04:00",
    ]
    assert local_ticks("0 * * * *", "Europe/London", "2026-10-25T00:00", 4) == [
        "2026-10-25T00:00+01:00",
        "2026-10-25T01:00+01:00",
        "2026-10-25T01:00+00:00",
        "2026-10-25T02:00+00:00",
    ]


def test_half_hourly_runs_in_both_repeated_hours_in_the_order_of_time():
    assert local_ticks("*/30 * * * *", "Europe/London", "2026-10-25T01:00", 5) == [
        "2026-10-25T01:00+01:00",
        "2026-10-25T01:30+01:00",
        "2026-10-25T01:00+00:00",
        "2026-10-25T01:30+00:00",
        "2026-10-25T02:00+00:00",
    ]


def test_half_an_hour_is_skipped_on_lord_howe():
    assert local_ticks("15 2 * * *", "Australia/Lord_Howe", "2026-10-04T00:00", 1) == ["2026-10-04T02:45+11:00"]
    assert local_ticks("0 * * * *", "Australia/Lord_Howe", "2026-10-04T01:00", 3) == [
        "2026-10-04T01:00+10:30",
        "2026-10-04T02:30+11:00",
        "2026-10-04T03:00+11:00",
    ]


def test_half_an_hour_is_repeated_on_lord_howe():
    assert local_ticks("45 1 * * *", "Australia/Lord_Howe", "2026-04-05T00:00", 1) == ["2026-04-05T01:45+10:30"]
    assert local_ticks("45 * * * *", "Australia/Lord_Howe", "2026-04-05T01:00", 3) == [
        "2026-04-05T01:45+11:00",
        "2026-04-05T01:45+10:30",
        "2026-04-05T02:45+10:30",
    ]


def test_a_whole_day_was_skipped_on_samoa():
    assert local_ticks("0 12 * * *", "Pacific/Apia", "2011-12-29T00:00", 3) == [
        "2011-12-29T12:00-10:00",
        "2011-12-31T12:00+14:00",
        "2012-01-01T12:00+14:00",
    ]


def test_tokyo_never_changes():
    assert local_ticks("0 3 * * *", "Asia/Tokyo", "2026-03-08T00:00", 2) == [
        "2026-03-08T03:00+09:00",
        "2026-03-09T03:00+09:00",
    ]


def test_digdag_resolves_repeated_hours_to_standard_time():
    assert local_ticks("0 * * * *", "America/Los_Angeles", "2016-11-06T00:00", 3, "digdag") == [
        "2016-11-06T00:00-07:00",
        "2016-11-06T01:00-08:00",
        "2016-11-06T02:00-08:00",
    ]
    assert local_ticks("0 * * * *", "America/Los_Angeles", "2016-03-13T01:00", 2, "digdag") == [
        "2016-03-13T01:00-08:00",
        "2016-03-13T03:00-07:00",
    ]


def days(expression, dialect, start, count):
    return [text[:10] for text in local_ticks(expression, "UTC", start, count, dialect)]


def test_two_day_fields_mean_either_for_airflow_and_both_for_digdag():
    assert days("0 0 13 * 5", "airflow", "2026-02-01", 4) == ["2026-02-06", "2026-02-13", "2026-02-20", "2026-02-27"]
    assert days("0 0 13 * 5", "digdag", "2026-02-01", 3) == ["2026-02-13", "2026-03-13", "2026-11-13"]


def test_step_in_a_day_field_counts_as_given():
    assert days("0 0 */10 * 1", "airflow", "2026-02-01", 4) == ["2026-02-01", "2026-02-02", "2026-02-09", "2026-02-11"]


def test_last_day_of_month():
    assert days("0 0 L * *", "digdag", "2028-01-31", 3) == ["2028-01-31", "2028-02-29", "2028-03-31"]


def test_day_that_few_months_have():
    assert days("0 0 31 * *", "airflow", "2026-02-01", 3) == ["2026-03-31", "2026-05-31", "2026-07-31"]
    assert days("0 0 29 2 *", "airflow", "2026-01-01", 2) == ["2028-02-29", "2032-02-29"]


def test_sixth_field_is_the_second():
    row = ticks("5 3 * * * 30", "UTC")
    assert row.after(datetime(2026, 2, 1, tzinfo=UTC)) == datetime(2026, 2, 1, 3, 5, 30, tzinfo=UTC)
    assert row.before(datetime(2026, 2, 1, tzinfo=UTC)) == datetime(2026, 1, 31, 3, 5, 30, tzinfo=UTC)


def test_alternatives_are_joined_without_duplicates():
    assert local_ticks("0 9 * * 1|0 9,12 * * *", "UTC", "2026-02-02T00:00", 3, "digdag") == [
        "2026-02-02T09:00+00:00",
        "2026-02-02T12:00+00:00",
        "2026-02-03T09:00+00:00",
    ]


def test_ranges_go_over_the_end():
    assert days("0 0 * * FRI-MON", "digdag", "2026-02-02", 4) == [
        "2026-02-02",
        "2026-02-06",
        "2026-02-07",
        "2026-02-08",
    ]
    assert [text[11:16] for text in local_ticks("0 22-2/2 * * *", "UTC", "2026-02-02T12:00", 4)] == [
        "22:00",
        "00:00",
        "02:00",
        "22:00",
    ]


@pytest.mark.parametrize(
    ("preset", "expression"), [("@daily", "0 0 * * *"), ("@quarterly", "0 0 1 */3 *"), ("@weekly", "0 0 * * 0")]
)
def test_presets(preset, expression):
    assert local_ticks(preset, "UTC", "2026-01-15", 5) == local_ticks(expression, "UTC", "2026-01-15", 5)


expressions = st.builds(
    "{} {} {} {} {}".format,
    st.sampled_from(["0", "30", "*/20", "15,45", "59", "*"]),
    st.sampled_from(["*", "1", "2", "2,3", "*/6", "0", "22-2"]),
    st.sampled_from(["*", "1", "*/2", "L", "29-31"]),
    st.sampled_from(["*", "3", "10,11"]),
    st.sampled_from(["*", "SUN", "1-5"]),
)
# Hours around the changes of the zones above, in 2026 and around Samoa's lost day.
nearby = st.builds(
    lambda day, minutes: datetime.fromisoformat(day).replace(tzinfo=UTC) + timedelta(minutes=minutes),
    st.sampled_from(["2026-03-08", "2026-11-01", "2026-03-29", "2026-10-25", "2026-04-05", "2026-10-04", "2011-12-30"]),
    st.integers(-2 * 24 * 60, 2 * 24 * 60),
)


@pytest.mark.parametrize("expression", ["0,30 2,3 * * *", "*/20 * * * *", "30 2 * * *", "0 3 * * *|30 2 * * *"])
@pytest.mark.parametrize("day", ["2026-03-08", "2026-11-01"])
def test_walking_back_over_a_change_of_clocks_gives_the_same_ticks(expression, day):
    row = ticks(expression, "America/New_York")
    begin = datetime.fromisoformat(day).replace(tzinfo=UTC)
    forward = [tick := row.after(begin)]
    while tick < begin + timedelta(days=1):
        forward.append(tick := row.after(tick))
    for minutes in range(0, 24 * 60, 10):
        moment = begin + timedelta(minutes=minutes)
        if moment > forward[0]:
            assert row.before(moment) == max(tick for tick in forward if tick < moment)


@given(expressions, st.sampled_from(ZONES), st.sampled_from(["airflow", "digdag"]), nearby)
def test_ticks_increase_and_can_be_walked_back(expression, zone, dialect, moment):
    row = ticks(expression, zone, dialect)
    first = row.after(moment)
    second = row.after(first)
    assert moment < first < second
    assert row.before(second) == first
    assert row.after(first - timedelta(microseconds=1)) == first
    assert row.before(first) <= moment


@given(expressions, st.sampled_from(ZONES), st.sampled_from(["airflow", "digdag"]), nearby, st.floats(0, 1))
def test_no_tick_depends_on_where_the_search_began(expression, zone, dialect, moment, share):
    row = ticks(expression, zone, dialect)
    tick = row.after(moment)
    for _ in range(3):
        following = row.after(tick)
        between = tick + (following - tick) * share
        assert row.after(between) == (following if between < following else row.after(following))
        assert row.before(between) == (tick if between > tick else row.before(tick))
        tick = following


@given(st.integers(0, 59), st.sampled_from([zone for zone in ZONES if "Lord" not in zone]), nearby)
def test_hourly_ticks_are_an_hour_apart_in_zones_that_move_by_hours(minute, zone, moment):
    row = ticks(f"{minute} * * * *", zone)
    tick = row.after(moment)
    for _ in range(30):
        following = row.after(tick)
        assert following - tick == timedelta(hours=1)
        tick = following


@given(st.integers(0, 59), nearby)
def test_hourly_ticks_hit_every_wall_hour_on_lord_howe(minute, moment):
    row, zone = ticks(f"{minute} * * * *", "Australia/Lord_Howe"), ZoneInfo("Australia/Lord_Howe")
    tick = row.after(moment)
    for _ in range(30):
        following = row.after(tick)
        hours = following.astimezone(zone).replace(tzinfo=None, minute=0) - tick.astimezone(zone).replace(
            tzinfo=None, minute=0
        )
        assert hours in (timedelta(0), timedelta(hours=1))
        assert following - tick <= timedelta(minutes=90)
        tick = following


def test_union_of_patterns_is_sorted():
    parts = tuple(CronTicks(pattern, UTC, "second") for pattern in parse_cron("0 5 * * *|0 4 * * *", "digdag"))
    midnight = datetime(2026, 1, 1, tzinfo=UTC)
    assert UnionTicks(parts).after(midnight).hour == 4
    assert UnionTicks(parts).before(midnight).hour == 5
