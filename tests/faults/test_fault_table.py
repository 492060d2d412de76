"""The parts of the harness that are plain functions."""

from __future__ import annotations

import json
import os
import sys

import pytest

from headrace.testing.faults.checker import Wrong
from headrace.testing.faults.fault import Outcome, Recovery
from headrace.testing.faults.record import Record, started_at
from headrace.testing.faults.table import percentile, table


def test_percentiles_are_values_that_were_measured():
    assert percentile([3.0], 50) == 3.0
    assert [percentile(range(1, 101), percent) for percent in (50, 99, 100)] == [50, 99, 100]


def test_what_is_not_promised_is_shown_in_parentheses():
    overlap, loss = Wrong("overlapped", "two at once"), Wrong("lost", "one is gone")
    recoveries = [Recovery(2.0, 1.0), Recovery(3.0, 0.5), Recovery(1.5)]
    outcome = Outcome("an agent is frozen", 3, 10, 90, [overlap, overlap, loss], [loss], recoveries)
    _, row = table([outcome]).splitlines()
    counts = ["3", "10", "90", "1", "0", "0", "(2)", "0", "0"]
    assert row.split()[4:] == [*counts, "0.50/1.00", "s", "2.00/3.00", "s", "FAILED"]


def test_what_was_not_measured_has_no_time():
    burst = Outcome("many schedules are due", 1, 1, 1, [], [], [Recovery(2.0)])
    _, *rows = table([burst, burst._replace(recoveries=[])]).splitlines()
    assert [row.split()[13:] for row in rows] == [["-", "2.00/2.00", "s", "ok"], ["-", "-", "ok"]]


def test_a_record_is_read_line_by_line(tmp_path):
    record = Record(tmp_path)
    assert record.lines() == []
    line = '{"what":"start","workflow":"w","run":"r","task":"t","number":1,"pid":1,"at":2.5,"wall":0}\n'
    (tmp_path / "record").write_text(line + line[:20])
    assert [one.name for one in record.lines()] == [("w", "r", "t")]
    (tmp_path / "record").write_text(line + line)
    assert len(record.lines()) == 2
    assert record.next_start(("w", "r", "t"), 2.0) == 2.5 and record.next_start(("w", "r", "t"), 2.5) is None


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells when a process began")
def test_a_process_that_got_the_number_of_an_earlier_one_is_not_that_one(tmp_path):
    begun = started_at(os.getpid())
    for name, times in (("own", [begun + 5]), ("earlier", [begun - 60]), ("unknown", [0, begun - 60]), ("open", [0])):
        folder = tmp_path / name
        folder.mkdir()
        said = {"what": "start", "workflow": "w", "run": "r", "task": "t", "number": 1, "pid": os.getpid()}
        lines = [{**said, "at": at, "task": f"t{number}"} for number, at in enumerate(times)]
        (folder / "record").write_text("".join(json.dumps(line) + "\n" for line in lines))
        assert bool(Record(folder).under_way()) == (name in ("own", "open")), name
