"""`schedule:` and `timezone:` of `.dig` files."""

from __future__ import annotations

import pytest

from headrace.definition import Schedule
from headrace.errors import DefinitionError


def spec(expression: str, delay: int = 0, timezone: str = "UTC") -> dict[str, object]:
    return {"expression": expression, "timezone": timezone, "semantics": "digdag", "delay_seconds": delay}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("hourly>: '30:00'", spec("0 * * * *", 1800)),
        ("hourly>: 00:05", spec("0 * * * *", 5)),
        ("daily>: 07:00:00", spec("0 0 * * *", 25200)),
        ("daily>: 24:00:00", spec("0 0 * * *", 86400)),
        ("daily>: 25:90:00", spec("0 0 * * *", 95400)),
        ("hourly>: 75:00", spec("0 * * * *", 4500)),
        ("weekly>: Sun,30:00:00", spec("0 0 * * Sun", 108000)),
        ("monthly>: 1,48:00:00", spec("0 0 1 * *", 172800)),
        ("weekly>: Sun,09:00:01", spec("0 0 * * Sun", 32401)),
        ("weekly>: 7,00:00:00", spec("0 0 * * 7")),
        ("monthly>: 1,09:00:00", spec("0 0 1 * *", 32400)),
        ("minutes_interval>: 40", spec("*/40 * * * *")),
        ("minutes_interval>: '5'\n  delay: 10", spec("*/5 * * * *", 10)),
        ("cron>: '42  4 1 * *'", spec("42 4 1 * *")),
        ("cron>: 42 4 1 * *\n  delay: 3600", spec("42 4 1 * *", 3600)),
        ("daily>:\n  at: 01:00:00", spec("0 0 * * *", 3600)),
        ("_type: daily\n  _command: 01:00:00", spec("0 0 * * *", 3600)),
    ],
)
def test_each_kind_is_a_pattern_and_a_delay(project, text, expected):
    schedule = project.compile(f"schedule:\n  {text}\n+t: {{echo>: 1}}").schedule
    assert schedule == Schedule(type="cron", spec=expected, catch_up="all")


def test_bounds_and_skipping(project):
    schedule = project.compile(
        """
        timezone: Asia/Tokyo
        schedule:
          daily>: 07:00:00
          skip_on_overtime: true
          skip_delayed_by: 1h 30m
          start: 2026-01-01
          end: 2026-01-31
        +t: {echo>: 1}
        """
    ).schedule
    assert schedule == Schedule(
        type="cron",
        spec=spec("0 0 * * *", 25200, "Asia/Tokyo"),
        catch_up="all",
        overlap="skip",
        skip_delayed_seconds=5400.0,
        start_at="2025-12-31T15:00:00+00:00",
        end_at="2026-01-31T14:59:59+00:00",
    )


def test_without_a_schedule_only_people_start_it(project):
    assert project.compile("+t: {echo>: 1}").schedule is None


@pytest.mark.parametrize(
    ("value", "name"),
    [("Asia/Tokyo", "Asia/Tokyo"), ("+09:00", "+09:00"), ("UTC-3", "-03:00"), ("'+0530'", "+05:30"), ("Z", "UTC")],
)
def test_time_zones(project, value, name):
    assert project.compile(f"timezone: {value}\n+t: {{echo>: 1}}").timezone == name


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("daily>: -1:00:00", 2, "expected `daily>` of the schedule to look like `HH:MM:SS`, got: `-1:00:00`"),
        ("daily>: 100000:00:00", 2, "to look like `HH:MM:SS`"),
        ("daily>: 10:00", 2, "expected `daily>` of the schedule to look like `HH:MM:SS`, got: `10:00`"),
        ("daily>:", 2, "expected `daily>` of the schedule to have a value"),
        ("hourly>: 07:00:00", 2, "to look like `MM:SS`"),
        ("weekly>: Someday,00:00:00", 2, "to begin with a weekday"),
        ("monthly>: 32,00:00:00", 2, "to begin with a day of the month"),
        ("minutes_interval>: 0", 2, "to be 1 to 59 minutes"),
        ("cron>: '* * *'", 2, "to be five cron fields, got: `* * *`"),
        ("cron>: '0 25 * * *'", 2, "25"),
        ("dayly>: 07:00:00", 2, "`dayly>` is not a kind of schedule"),
        ("start: 2026-01-01", 1, "expected `schedule` to have one of hourly>, daily>"),
        ("daily>: 07:00:00\n  hourly>: 00:00", 1, "got: `daily>`, `hourly>`"),
        ("daily>: 07:00:00\n  strat: 2026-01-01", 3, "`schedule` has no setting `strat`"),
        ("daily>: 07:00:00\n  start: 2026-1-1", 3, "expected `start` of the schedule to be a date"),
        ("daily>: 07:00:00\n  end: 20260101", 3, "expected `end` of the schedule to be a date"),
        ("daily>: 07:00:00\n  skip_delayed_by: soon", 3, "`skip_delayed_by` of the schedule to be a duration"),
        ("cron>: '* * * * *'\n  delay: x", 2, "and its `delay` to be a whole number"),
    ],
)
def test_mistakes_in_schedules(project, text, line, message):
    with pytest.raises(DefinitionError) as caught:
        project.compile(f"schedule:\n  {text}\n")
    assert message in caught.value.message
    assert (caught.value.file, caught.value.line) == ("wf.dig", line)
