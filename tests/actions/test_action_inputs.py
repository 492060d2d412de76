"""Parameters and times as people type them, and the queue of a local run."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from headrace.actions.params import parse_params, settled, typed_params
from headrace.actions.sessions import logical_time
from headrace.actions.wording import duration
from headrace.definition import Node, Schedule, Workflow
from headrace.errors import UsageError

NOW = datetime(2026, 2, 3, 4, 5, 6, tzinfo=UTC)
TOKYO = Workflow(name="flow", language="dig", nodes=(Node(key="+flow", kind="group"),), timezone="Asia/Tokyo")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("5", 5), ("1.5", 1.5), ("true", True), ("[1, 2]", [1, 2]), ('{"a": 1}', {"a": 1}), ('"5"', "5"),
        ("monday", "monday"), ("2026-02-03", "2026-02-03"), ("", ""), ("a=b", "a=b"), ("NaN", "NaN"), ("{x", "{x"),
    ],
)  # fmt: skip
def test_a_value_is_json_where_it_is_json(text, value):
    assert parse_params([f"key={text}"]) == {"key": value}


@pytest.mark.parametrize(
    ("pairs", "params"),
    [
        (["n=5", "v=1.0", "is=true", "day=20260131"], {"n": "5", "v": "1.0", "is": "true", "day": "20260131"}),
        (["a.b=1", "a.c.d=x", "a.b=2"], {"a": {"b": "2", "c": {"d": "x"}}}),
        (["a=1,b.c=2,d=3,4,,5"], {"a": "1", "b": {"c": "2"}, "d": "3,4,,5"}),
        (["a=x=y", 'list=["p","q"]', "empty="], {"a": "x=y", "list": '["p","q"]', "empty": ""}),
        (["a=1", "a.b=2"], {"a": {"b": "2"}}),
    ],
)
def test_parameters_of_dig_workflows_are_texts_and_dots_make_maps(pairs, params):
    assert settled("dig", typed_params(pairs)) == params
    assert settled("python", typed_params(pairs)) == parse_params(pairs)


def test_what_was_typed_joins_the_maps_of_a_file():
    given = {"pg": {"host": "h", "port": 1}, **typed_params(["pg.port=2"])}
    assert settled("dig", given) == {"pg": {"host": "h", "port": "2"}}


@pytest.mark.parametrize("pair", ["key", "=5", " =5"])
def test_a_parameter_without_key_or_value_is_refused(pair):
    with pytest.raises(UsageError, match="KEY=VALUE"):
        parse_params([pair])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (None, NOW),
        ("hourly", datetime(2026, 2, 3, 4, tzinfo=UTC)),
        ("daily", datetime(2026, 2, 2, 15, tzinfo=UTC)),
        ("last", datetime(2026, 2, 2, 15, tzinfo=UTC)),
        ("2026-01-01", datetime(2025, 12, 31, 15, tzinfo=UTC)),
        ("2026-01-01 09:30:00", datetime(2026, 1, 1, 0, 30, tzinfo=UTC)),
        ("2026-01-01T00:00:00Z", datetime(2026, 1, 1, tzinfo=UTC)),
    ],
)
def test_times_are_read_by_the_clock_of_the_workflow(text, expected):
    assert logical_time(TOKYO, text, NOW) == expected


def test_last_is_the_last_scheduled_time():
    schedule = Schedule(type="cron", spec={"expression": "0 3 * * *"})
    workflow = Workflow(name="flow", language="python", nodes=TOKYO.nodes, schedule=schedule)
    assert logical_time(workflow, "last", NOW) == datetime(2026, 2, 3, 3, tzinfo=UTC)


@pytest.mark.parametrize("text", ["yesterdy", "2026-13-01", "schedule"])
def test_a_time_that_makes_no_sense(text):
    with pytest.raises(UsageError):
        logical_time(TOKYO, text, NOW)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.26, "0.3 s"), (41, "41 s"), (125, "2 min 5 s"), (12_000, "3 h 20 min"), (187_200, "2 d 4 h")],
)
def test_durations_are_short(seconds, text):
    assert duration(seconds) == text
