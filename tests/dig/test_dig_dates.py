"""Dates in `${…}`: moment, and a local time zone that is the workflow's."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import time

import pytest

from headrace.template.javascript import Evaluator, ExpressionError
from headrace.template.local_zone import local_zone, posix_zone

ZONES = ("UTC", "Asia/Tokyo", "America/Los_Angeles")
SESSION = {
    "UTC": "2026-03-08T00:00:00+00:00",
    "Asia/Tokyo": "2026-03-08T00:00:00+09:00",
    "America/Los_Angeles": "2026-03-08T00:00:00-08:00",
}
evaluator = Evaluator()


@pytest.mark.parametrize(
    ("expression", "in_utc", "in_tokyo", "in_los_angeles"),
    [
        ("moment(session_time).format()", *SESSION.values()),
        ("moment(session_time).add(1, 'days').format('YYYY-MM-DD')", *["2026-03-09"] * 3),
        ("moment(session_time).subtract(7, 'days').format('YYYY-MM-DD')", *["2026-03-01"] * 3),
        # The clocks of Los Angeles jump over two o'clock in this night: a day has 23 hours.
        (
            "moment(session_time).add(1, 'days').format()",
            "2026-03-09T00:00:00+00:00", "2026-03-09T00:00:00+09:00", "2026-03-09T00:00:00-07:00",
        ),
        (
            "moment(session_time).add(24, 'hours').format()",
            "2026-03-09T00:00:00+00:00", "2026-03-09T00:00:00+09:00", "2026-03-09T01:00:00-07:00",
        ),
        ("moment(session_time).unix()", "1772928000", "1772895600", "1772956800"),
        (
            "moment(session_time).utc().format('YYYY-MM-DD HH:mm:ss Z')",
            "2026-03-08 00:00:00 +00:00", "2026-03-07 15:00:00 +00:00", "2026-03-08 08:00:00 +00:00",
        ),
        ("moment(session_time).startOf('month').format('YYYYMMDD')", *["20260301"] * 3),
        ("moment(session_time).endOf('month').format('YYYYMMDD')", *["20260331"] * 3),
        ("moment(session_time).isoWeekday()", *["7"] * 3),
        ("moment(session_time).format('dddd, MMMM Do YYYY')", *["Sunday, March 8th 2026"] * 3),
        ("moment('2026-03-08').format('Z')", "+00:00", "+09:00", "-08:00"),
        ("new Date(0).getHours()", "0", "9", "16"),
        ("new Date(2026, 2, 8).getTime() / 1000", "1772928000", "1772895600", "1772956800"),
        (
            "moment.tz(session_time, 'Europe/Paris').format()",
            "2026-03-08T01:00:00+01:00", "2026-03-07T16:00:00+01:00", "2026-03-08T09:00:00+01:00",
        ),
        ("moment(session_time).tz('Asia/Kolkata').format('Z')", *["+05:30"] * 3),
        ("moment.duration(90, 'minutes').asHours()", *["1.5"] * 3),
        ("moment(session_time).diff(moment(session_time).subtract(2, 'days'), 'days')", *["2"] * 3),
    ],
)  # fmt: skip
def test_moments_are_in_the_workflows_time_zone(expression, in_utc, in_tokyo, in_los_angeles):
    expected = dict(zip(ZONES, (in_utc, in_tokyo, in_los_angeles), strict=True))
    found = {zone: evaluator.render(f"${{{expression}}}", {"session_time": SESSION[zone]}, zone) for zone in ZONES}
    assert found == expected


def test_a_task_finds_moment_in_its_workflows_zone(project, capfd):
    project.run("""
        timezone: Asia/Tokyo
        +t: {echo>: "${moment(session_time).add(1, 'days').format('YYYY-MM-DD HH:mm Z')}"}
    """)
    assert "2026-02-05 00:05 +09:00" in capfd.readouterr().out


def test_what_one_expression_does_to_moment_is_gone_for_the_next_task():
    other = Evaluator()
    assert other.render("${moment.locale('x'), moment.tz.setDefault('Asia/Tokyo'), moment = 1, typeof moment}", {})
    assert other.render("${moment('2026-03-08T00:00:00Z').format('MMM Z')}", {}) == "Mar +00:00"


def test_a_parameter_called_moment_hides_the_library():
    assert evaluator.render("${moment}", {"moment": "now"}) == "now"


def test_moment_is_read_only_by_whoever_mentions_it():
    program = """
        import time
        from headrace.template import javascript_libraries
        from headrace.template.javascript import Evaluator
        import headrace.template.javascript as javascript
        read = []
        javascript.source_of = lambda name: read.append(name) or javascript_libraries.source_of(name)
        evaluator = Evaluator()
        for text in ("${1 + 1} tz", "${moment(0).unix()}", "${moment.tz(0, 'UTC').unix()}", "${moment(1).unix()}"):
            evaluator.render(text, {})
            print(len(read))
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["0", "1", "2", "2"]


def test_a_moment_that_cannot_be_is_named():
    with pytest.raises(ExpressionError, match=r"evaluate `.*nothing\(\)}` of `text:1`: TypeError"):
        evaluator.render("${moment().nothing()}", {})


@pytest.mark.parametrize(
    ("name", "offset"), [("+09:00", -32400), ("-03:30", 12600), ("+0000", 0), ("Asia/Tokyo", -32400), ("UTC", 0)]
)
def test_zones_and_offsets_as_the_c_library_reads_them(name, offset):
    with local_zone(name):
        assert time.timezone == offset


def test_the_processes_own_zone_comes_back(monkeypatch):
    monkeypatch.setenv("TZ", "Asia/Kolkata")
    with local_zone("Asia/Tokyo"):
        assert os.environ["TZ"] == posix_zone("Asia/Tokyo")
    assert (os.environ["TZ"], time.timezone) == ("Asia/Kolkata", -19800)
    monkeypatch.undo()
    time.tzset()


def test_without_a_zone_database_of_the_system_the_one_of_python_is_used(monkeypatch):
    monkeypatch.setattr("zoneinfo.TZPATH", ())
    posix_zone.cache_clear()
    try:
        assert posix_zone("Asia/Tokyo").endswith("tzdata/zoneinfo/Asia/Tokyo")
    finally:
        posix_zone.cache_clear()
