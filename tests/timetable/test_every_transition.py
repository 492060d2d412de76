"""The long form of `test_calendar_properties.py`: not some changes of clocks but every kind of them that there is."""

from __future__ import annotations

from collections import defaultdict
from datetime import datetime, timedelta
from functools import cache
from itertools import islice, pairwise

import pytest
from calendars import DAY, YEARS, ZONES, changes, local, meant, offset

from headrace.authoring.dig.scheduling import compile_schedule
from headrace.definition import Place, Schedule
from headrace.timetable import timetable_for

START = "1960-01-01T00:00:00Z"
SLOTS = 4
CRONS = ("30 2 * * *", "*/20 * * * *", "0 0 * * *")
AIRFLOW = {
    "cron": ("cron", {"expression": "30 2 * * *"}),
    "cron with periods": ("cron", {"expression": "0 0 * * *", "intervals": True}),
    "cron every 20 minutes": ("cron", {"expression": "*/20 * * * *"}),
    "cron of weeks": ("cron", {"expression": "0 1 * * SUN", "intervals": True}),
    "cron of months": ("cron", {"expression": "15 2 L * *"}),
    "several crons": ("cron", {"expression": "30 1 * * *|0 3 * * SUN"}),
    "timedelta": ("interval", {"seconds": 43_200, "intervals": True}),
    "months": ("interval", {"months": 1, "seconds": 0}),
}
DIGDAG = {
    "hourly>": {"hourly>": "30:00"},
    "daily>": {"daily>": "02:30:00"},
    "weekly>": {"weekly>": "Sun,01:30:00"},
    "monthly>": {"monthly>": "31,02:15:00"},
    "minutes_interval>": {"minutes_interval>": 20},
    "seconds_interval>": {"seconds_interval>": 5000},
    "cron>": {"cron>": "30 2 * * *", "delay": 5400},
}


@cache
def kinds_of_changes() -> dict[str, list[datetime]]:
    """By zone, one of all changes by the same amount of clocks that show the same, on the same day of the week."""
    found: dict[object, tuple[str, datetime]] = {}
    for zone, change in ((name, instant) for name in ZONES for year in YEARS for instant in changes(name, year)):
        before = change - timedelta(seconds=1)
        wall = local(zone, before)
        found.setdefault((wall.time(), wall.weekday(), offset(zone, before), offset(zone, change)), (zone, change))
    chosen = defaultdict(list)
    for zone, change in found.values():
        chosen[zone].append(change)
    return chosen


def timetables(zone):
    for kind, spec in AIRFLOW.values():
        yield timetable_for(Schedule(type=kind, spec=spec, start_at=START, catch_up="all"), zone)
    for section in DIGDAG.values():
        yield timetable_for(compile_schedule(section, zone, Place()), zone)


@pytest.mark.long
def test_no_slot_is_lost_or_doubled_at_any_change_of_clocks():
    for zone, chosen in kinds_of_changes().items():
        known = list(timetables(zone))
        for change in chosen:
            for timetable in known:
                check_slots(timetable, change, zone)


def check_slots(timetable, change, zone):
    moment = change - timedelta(hours=2)
    slots = list(islice(timetable.slots_from(moment), SLOTS))
    assert timetable.previous(slots[0]).logical_time < moment <= slots[0].logical_time, (zone, change)
    for one, other in pairwise(slots):
        assert one.logical_time < other.logical_time and one.run_at < other.run_at, (zone, change)
        assert timetable.following(one) == other and timetable.previous(other) == one, (zone, change)
        assert not timetable.family.has_intervals or one.interval_end == other.interval_start, (zone, change)
    assert all(timetable.slot_at(slot.logical_time) == slot for slot in slots), (zone, change)


@pytest.mark.long
@pytest.mark.parametrize("dialect", ["airflow", "digdag"])
@pytest.mark.parametrize("expression", CRONS)
def test_ticks_are_those_that_the_wall_clock_means_at_every_change_of_clocks(expression, dialect):
    for zone, chosen in kinds_of_changes().items():
        ticks = timetable_for(Schedule(type="cron", spec={"expression": expression, "semantics": dialect}), zone).ticks
        for change in chosen:
            begin, end, found = change - DAY / 4, change + DAY / 4, []
            tick = begin - timedelta(microseconds=1)
            while (tick := ticks.after(tick)) <= end:
                found.append(tick)
            assert found == meant(expression, dialect, zone, begin, end), (zone, change)
