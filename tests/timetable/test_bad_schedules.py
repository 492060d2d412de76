"""What a schedule that makes no sense says about itself."""

from __future__ import annotations

import pytest

from headrace.definition import Schedule
from headrace.errors import DefinitionError
from headrace.timetable import timetable_for


def message(timezone="UTC", **fields):
    with pytest.raises(DefinitionError) as caught:
        timetable_for(Schedule(**fields), timezone)
    return str(caught.value)


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("0 25 * * *", "whose hour is 0 to 23"),
        ("61 * * * *", "whose minute is 0 to 59"),
        ("0 0 0 * *", "whose day of month is 1 to 31"),
        ("0 0 * 13 *", "whose month is 1 to 12"),
        ("0 0 * * 8", "whose day of week is 0 to 6"),
        ("0 0 * * XYZ", "whose day of week is 0 to 6"),
        ("*/0 * * * *", "whose minute is 0 to 59"),
        ("0 0 30 2 *", "on a day that some month has"),
    ],
)
@pytest.mark.parametrize("semantics", ["airflow", "digdag"])
def test_bad_cron_names_the_field(expression, expected, semantics):
    text = message(type="cron", spec={"expression": expression, "semantics": semantics})
    assert text == f"expected a schedule {expected}, got: `{expression}`"


@pytest.mark.parametrize(("expression", "count"), [("0 0 * *", 4), ("", 0), ("0 0 * * * * *", 7)])
@pytest.mark.parametrize("semantics", ["airflow", "digdag"])
def test_cron_with_another_number_of_fields(expression, count, semantics):
    text = message(type="cron", spec={"expression": expression, "semantics": semantics})
    assert text == f"expected the schedule to be five cron fields, got: `{expression}` (found {count} fields)"


def test_seconds_are_for_airflow_only():
    assert "whose second is 0 to 59" in message(type="cron", spec={"expression": "0 0 * * * 60"})
    assert "(found 6 fields)" in message(type="cron", spec={"expression": "0 0 * * * 30", "semantics": "digdag"})


def test_unknown_preset_suggests_the_nearest():
    assert (
        message(type="cron", spec={"expression": "@dayly"})
        == "unknown schedule: `@dayly`\nhint: did you mean `@daily`?"
    )


def test_unknown_type_suggests_the_nearest():
    assert "hint: did you mean `cron`?" in message(type="crom")


def test_unknown_zone_suggests_the_nearest():
    text = message(timezone="Europe/Londom", type="once")
    assert "got: `Europe/Londom`" in text
    assert "did you mean `Europe/London`?" in text


@pytest.mark.parametrize("zone", ["../etc/passwd", "", "America", "+25:00"])
def test_zone_that_is_no_name_is_refused(zone):
    assert f"got: `{zone}`" in message(timezone=zone, type="once")


@pytest.mark.parametrize("seconds", [0, -1, None, "60", True])
def test_interval_must_be_positive(seconds):
    assert f"positive number of seconds, got: `{seconds}`" in message(type="interval", spec={"seconds": seconds})


def test_start_must_be_an_instant():
    assert "schedule's start to be an ISO 8601 instant, got: `soon`" in message(type="once", start_at="soon")


def test_semantics_must_be_known():
    assert "got: `cron4j`" in message(type="cron", spec={"expression": "* * * * *", "semantics": "cron4j"})
