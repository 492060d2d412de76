"""Every kind of schedule, in every time zone, around every change of its clocks: no slot is lost, doubled or moved."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import islice, pairwise, takewhile

from calendars import DAY, MINUTE, difficult, local, meant, offset
from hypothesis import given
from hypothesis import strategies as st

from headrace.authoring.dig.scheduling import compile_schedule
from headrace.definition import CRON_PRESETS, Place, Schedule
from headrace.timetable import timetable_for

COUNT = 6
HOURS = timedelta(hours=10)
START = "1960-01-01T00:00:00Z"

fields = (
    st.sampled_from(["0", "30", "*/20", "15,45", "59", "*/7"]),
    st.sampled_from(["*", "1", "2", "2,3", "*/6", "0", "22-2", "*/1"]),
    st.sampled_from(["*", "*", "1", "*/2", "L", "29-31"]),
    st.sampled_from(["*", "*", "2", "3,10"]),
    st.sampled_from(["*", "*", "SUN", "1-5"]),
)
expressions = st.builds("{} {} {} {} {}".format, *fields)
frequent = st.builds("{} {} * * *".format, *fields[:2])
clocks = st.builds("{:02}:{:02}:{:02}".format, st.integers(0, 23), st.integers(0, 59), st.integers(0, 59))
dig_sections = st.one_of(
    st.builds(lambda time: {"hourly>": time}, st.builds("{:02}:{:02}".format, st.integers(0, 59), st.integers(0, 59))),
    st.builds(lambda time: {"daily>": time}, clocks),
    st.builds(lambda day, time: {"weekly>": f"{day},{time}"}, st.sampled_from(["Sun", "1", "7", "Fri"]), clocks),
    st.builds(lambda day, time: {"monthly>": f"{day},{time}"}, st.sampled_from([1, 28, 29, 30, 31]), clocks),
    st.builds(lambda minutes: {"minutes_interval>": minutes}, st.integers(1, 59)),
    st.builds(lambda text, delay: {"cron>": text, "delay": delay}, expressions, st.sampled_from([0, 90, 7200])),
    st.builds(lambda seconds: {"seconds_interval>": seconds}, st.integers(1, 200_000)),
)


@st.composite
def specs(draw):
    """An Airflow schedule that comes again and again, by type and spec."""
    kind = draw(st.sampled_from(["cron", "preset", "multiple", "timedelta", "months"]))
    periods = draw(st.sampled_from([{}, {"intervals": True}, {"lookback_seconds": 5400}]))
    if kind == "cron":
        return "cron", {"expression": draw(expressions), **periods}
    if kind == "preset":
        return "cron", {"expression": draw(st.sampled_from(sorted(CRON_PRESETS))), **periods}
    if kind == "multiple":
        return "cron", {"expression": f"{draw(expressions)}|{draw(expressions)}", **periods}
    if kind == "timedelta":
        return "interval", {"seconds": draw(st.integers(60, 3_000_000)), **periods}
    return "interval", {"months": draw(st.integers(1, 14)), "seconds": draw(st.sampled_from([0, 86_400])), **periods}


@st.composite
def recurring(draw):
    """A timetable, and an instant near which it is difficult."""
    zone, moment = draw(difficult())
    if draw(st.booleans()):
        return timetable_for(compile_schedule(draw(dig_sections), zone, Place()), zone), moment
    kind, spec = draw(specs())
    return timetable_for(Schedule(type=kind, spec=spec, start_at=START, catch_up="all"), zone), moment


@given(recurring())
def test_slots_increase_and_lead_to_each_other(given):
    timetable, moment = given
    slots = list(islice(timetable.slots_from(moment), COUNT))
    assert slots[0].logical_time >= moment
    assert timetable.previous(slots[0]).logical_time < moment, "none is left out before the first"
    for one, other in pairwise(slots):
        assert one.logical_time < other.logical_time
        assert one.run_at < other.run_at
        assert timetable.following(one) == other
        assert timetable.previous(other) == one
    for slot in slots:
        assert timetable.slot_at(slot.logical_time) == slot
        assert slot.interval_start <= slot.interval_end <= slot.run_at
        assert slot.logical_time <= slot.run_at


@given(recurring())
def test_periods_meet_where_the_schedule_has_periods(given):
    timetable, moment = given
    slots = list(islice(timetable.slots_from(moment), COUNT))
    family = timetable.family
    for one, other in pairwise(slots):
        if family.has_intervals:
            assert one.interval_end == other.interval_start
        else:
            assert one.interval_end - one.interval_start == family.lookback
        assert one.run_at - one.interval_end == family.delay


@given(recurring(), st.lists(st.floats(0, 2.5), min_size=1, max_size=5))
def test_whoever_looks_now_and_then_starts_each_slot_once(given, waits):
    """As a scheduler does: what is due is started, and the next one is remembered by its logical time only."""
    timetable, moment = given
    planned = next(timetable.slots_from(moment))
    step = timetable.following(planned).run_at - planned.run_at
    now, started = planned.run_at - MINUTE, []
    for wait in waits:
        now += step * wait
        due = timetable.due_from(timetable.slot_at(planned.logical_time), now)
        started += due.slots
        planned = due.next
    assert started == list(takewhile(lambda slot: slot.run_at <= now, timetable.slots_from(moment)))
    assert planned.run_at > now


@given(recurring())
def test_a_run_by_hand_is_for_the_last_complete_period(given):
    timetable, moment = given
    slot = timetable.manual(moment)
    assert slot.logical_time == slot.run_at == moment
    assert slot.interval_start <= slot.interval_end <= moment
    if timetable.family.has_intervals:
        following = timetable.following(timetable.slot_at(slot.interval_start))
        assert following.interval_end > moment - timetable.family.delay


@given(st.one_of(frequent, expressions), st.sampled_from(["airflow", "digdag"]), difficult())
def test_ticks_are_those_that_the_wall_clock_means(expression, dialect, where):
    zone, moment = where
    ticks = timetable_for(Schedule(type="cron", spec={"expression": expression, "semantics": dialect}), zone).ticks
    begin, end = moment - HOURS, moment + HOURS
    expected = meant(expression, dialect, zone, begin, end)
    forward, tick = [], begin - timedelta(microseconds=1)
    while (tick := ticks.after(tick)) <= end:
        forward.append(tick)
    backward, tick = [], end + timedelta(microseconds=1)
    while (tick := ticks.before(tick)) >= begin:
        backward.append(tick)
    assert forward == expected
    assert backward[::-1] == expected


@given(st.integers(0, 23), st.integers(0, 59), difficult())
def test_a_daily_run_has_the_wall_time_that_is_written_except_where_clocks_skip_it(hour, minute, where):
    zone, moment = where
    daily = timetable_for(Schedule(type="cron", spec={"expression": f"{minute} {hour} * * *"}, start_at=START), zone)
    for slot in islice(daily.slots_from(moment), COUNT):
        shown = local(zone, slot.logical_time)
        if (shown.hour, shown.minute) != (hour, minute):
            skipped = offset(zone, slot.logical_time) - offset(zone, slot.logical_time - 2 * DAY)
            assert skipped > timedelta(0), "moved, although clocks were not put forward"
            earlier = local(zone, slot.logical_time) - skipped
            assert (earlier.hour, earlier.minute) == (hour, minute)


@given(st.integers(60, 200_000), difficult())
def test_elapsed_time_knows_no_clocks(seconds, where):
    zone, moment = where
    spec = {"seconds": seconds, "intervals": True}
    every = timetable_for(Schedule(type="interval", spec=spec, start_at=moment.isoformat()), zone)
    slots = list(islice(every.slots_from(moment), COUNT))
    assert [slot.logical_time for slot in slots] == [moment + timedelta(seconds=seconds) * n for n in range(COUNT)]


@given(st.lists(st.integers(-200_000, 200_000), min_size=1, max_size=8), difficult())
def test_listed_times_come_once_each_in_order(seconds, where):
    zone, moment = where
    instants = [moment + timedelta(seconds=one) for one in seconds]
    spec = {"instants": [one.isoformat() for one in instants]}
    listed = timetable_for(Schedule(type="events", spec=spec, catch_up="all", start_at=START), zone)
    slots = list(listed.slots_from(datetime(1960, 1, 1, tzinfo=UTC)))
    assert [slot.logical_time for slot in slots] == sorted(set(instants))
    assert [listed.following(slot) for slot in slots] == [*slots[1:], None]
    assert [listed.previous(slot) for slot in slots] == [None, *slots[:-1]]


@given(difficult(), st.lists(st.integers(1, 100_000), min_size=2, max_size=6))
def test_back_to_back_periods_leave_no_time_out(where, waits):
    zone, now = where
    endless = timetable_for(Schedule(type="continuous"), zone)
    planned, slots = endless.first(now), []
    for wait in waits:
        now += timedelta(seconds=wait)
        due = endless.due_from(planned, now)
        slots += due.slots
        planned = due.next
    assert slots[-1].interval_end <= now
    for one, other in pairwise(slots):
        assert one.interval_end == other.interval_start
        assert one.logical_time < other.logical_time


@given(difficult())
def test_once_is_once_wherever_clocks_are(where):
    zone, moment = where
    once = timetable_for(Schedule(type="once", start_at=moment.isoformat()), zone)
    due = once.due(None, moment)
    assert [slot.logical_time for slot in due.slots] == [moment]
    assert due.next is None and once.following(due.slots[0]) is None
