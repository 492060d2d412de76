"""When deadlines are due."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from headrace.clock import from_micros, to_micros
from headrace.definition import Deadline
from headrace.state import RunMoments, due_at


def at(text: str) -> int:
    return to_micros(datetime.fromisoformat(text).replace(tzinfo=UTC))


RUN = RunMoments(
    type="scheduled",
    logical_at=at("2026-03-28T00:00"),
    interval_end=at("2026-03-29T00:00"),
    run_after=at("2026-03-29T00:30"),
    queued_at=at("2026-03-29T00:31"),
)


def due(zone="UTC", run=RUN, average=None, **fields):
    found = due_at(Deadline(name="x", **fields), run, zone, average)
    return None if found is None else f"{from_micros(found):%m-%dT%H:%M:%S}"


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"counts_from": "logical_time", "seconds": 60}, "03-28T00:01:00"),
        ({"counts_from": "interval_end", "seconds": -60}, "03-28T23:59:00"),
        ({"counts_from": "run_after", "seconds": 0.5}, "03-29T00:30:00"),
        ({"counts_from": "queued", "seconds": 3600}, "03-29T01:31:00"),
        ({"counts_from": "instant", "instant": "2026-04-01T12:00:00+02:00", "seconds": 1}, "04-01T10:00:01"),
        ({"counts_from": "average_end"}, None),
        ({"counts_from": "average_end", "average": 120_000_000, "seconds": 60}, "03-29T00:34:00"),
        ({"counts_from": "run_after", "wall_time": "00:30:00"}, "03-29T00:30:00"),
        ({"counts_from": "run_after", "wall_time": "00:29:59"}, "03-30T00:29:59"),
        ({"counts_from": "run_after", "wall_time": "09:00:00", "zone": "Asia/Tokyo"}, "03-30T00:00:00"),
        ({"counts_from": "run_after", "wall_time": "09:45:00", "zone": "+09:00"}, "03-29T00:45:00"),
    ],
)
def test_due(fields, expected):
    assert due(**fields) == expected


def test_a_time_that_clocks_skip_comes_when_they_are_put_forward():
    # On that day it is 03:00 in Berlin right after 01:59:59.
    assert due("Europe/Berlin", counts_from="run_after", wall_time="02:30:00") == "03-29T01:30:00"


def test_a_run_without_a_moment_has_no_deadline_by_it():
    run = RUN._replace(logical_at=None, interval_end=None)
    assert due(run=run, counts_from="logical_time") is None
    assert due(run=run, counts_from="interval_end") == "03-29T00:30:00"
