"""What a DAG may write as its schedule, and what the definition makes of it."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from headrace.authoring.dag import installation_defaults
from headrace.errors import DefinitionError, HeadraceError
from headrace.timetable import timetable_for

HEAD = """
from datetime import datetime, timedelta
import pendulum
from dateutil.relativedelta import relativedelta
from airflow.sdk import *
from airflow.timetables.base import DagRunInfo, DataInterval, TimeRestriction, Timetable
from airflow.timetables.simple import ContinuousTimetable, NullTimetable, OnceTimetable
from airflow.operators.empty import EmptyOperator

class Mine(Timetable):
    def serialize(self):
        return {"n": 1}

with DAG("flow", start_date=datetime(2026, 1, 1), ARGUMENTS):
    EmptyOperator(task_id="a")
"""
CRON = {"timezone": "UTC", "semantics": "airflow", "intervals": False}


def schedule_of(project, written, **arguments):
    given = ", ".join([f"schedule={written}", *(f"{name}={value}" for name, value in arguments.items())])
    return project.workflow(HEAD.replace("ARGUMENTS", given)).schedule


@pytest.mark.parametrize(
    ("written", "kind", "spec"),
    [
        ("'@daily'", "cron", {"expression": "0 0 * * *", **CRON}),
        ("relativedelta(months=1, days=2)", "interval", {"seconds": 172800.0, "months": 1, "intervals": False}),
        ("relativedelta(hours=1)", "interval", {"seconds": 3600.0, "intervals": False}),
        (
            "CronTriggerTimetable('0 3 * * *', timezone='Asia/Tokyo', interval=timedelta(hours=1))",
            "cron",
            {"expression": "0 3 * * *", **CRON, "timezone": "Asia/Tokyo", "lookback_seconds": 3600.0},
        ),
        (
            "CronTriggerTimetable('0 3 * * *', timezone=pendulum.timezone('Europe/Paris'), run_immediately=True)",
            "cron",
            {"expression": "0 3 * * *", **CRON, "timezone": "Europe/Paris", "starts_at_once": True},
        ),
        (
            "MultipleCronTriggerTimetable('@daily', '30 5 * * *', timezone='UTC', run_immediately=timedelta(hours=2))",
            "cron",
            {"expression": "0 0 * * * | 30 5 * * *", **CRON, "first_within_seconds": 7200.0},
        ),
        (
            "CronDataIntervalTimetable('@hourly', timezone='UTC')",
            "cron",
            {"expression": "0 * * * *", **CRON, "intervals": True},
        ),
        ("DeltaDataIntervalTimetable(timedelta(hours=2))", "interval", {"seconds": 7200.0, "intervals": True}),
        (
            "DeltaTriggerTimetable(timedelta(hours=2), interval=timedelta(hours=1))",
            "interval",
            {"seconds": 7200.0, "intervals": False, "lookback_seconds": 3600.0},
        ),
        (
            "EventsTimetable([pendulum.datetime(2026, 5, 2), pendulum.datetime(2026, 5, 1)])",
            "events",
            {"instants": ["2026-05-01T00:00:00Z", "2026-05-02T00:00:00Z"], "manual_on_tick": False},
        ),
        ("OnceTimetable()", "once", {}),
        ("Asset('a')", "assets", {"when": {"asset": "a"}}),
        ("[Asset('a'), AssetAlias('b')]", "assets", {"when": {"all": [{"asset": "a"}, {"alias": "b"}]}}),
        (
            "(Asset('a') | Asset('b')) & Asset.ref(name='c')",
            "assets",
            {"when": {"all": [{"any": [{"asset": "a"}, {"asset": "b"}]}, {"asset": "c"}]}},
        ),
        (
            "AssetOrTimeSchedule(timetable=CronTriggerTimetable('@daily', timezone='UTC'), assets=[Asset('a')])",
            "assets",
            {"when": {"all": [{"asset": "a"}]}, "time": {"type": "cron", "spec": {"expression": "0 0 * * *", **CRON}}},
        ),
    ],
)
def test_everything_that_can_be_written(project, written, kind, spec):
    schedule = schedule_of(project, written)
    assert (schedule.type, schedule.spec) == (kind, spec)


@pytest.mark.parametrize("written", ["None", "NullTimetable()", "[]"])
def test_never(project, written):
    assert schedule_of(project, written) is None


def test_back_to_back(project):
    schedule = schedule_of(project, "'@continuous'", max_active_runs=1)
    assert (schedule.type, schedule.overlap) == ("continuous", "wait")


def test_a_timetable_that_a_user_wrote_is_known_by_its_class_and_its_data(project):
    schedule = schedule_of(project, "Mine()")
    assert (schedule.type, schedule.spec["data"]) == ("custom", {"n": 1})
    assert schedule.spec["class"].endswith("_flow.Mine")


@pytest.mark.parametrize(
    ("written", "sentence"),
    [
        ("5", "expected a cron expression, a preset, a timedelta, a timetable, assets or None, got: `int`"),
        ("timedelta(0)", "positive"),
        ("relativedelta(day=1)", r"relativedelta of lengths such as `months=1`, got: .* with `day`"),
        ("CronTriggerTimetable('0 25 * * *', timezone='UTC')", "hour is 0 to 23"),
        ("CronTriggerTimetable('@daily', timezone='Mars/Base')", "expected a time zone"),
        ("ContinuousTimetable()", "needs `max_active_runs=1`, got: 16"),
        ("CronTriggerTimetable('@daily', timezone='UTC', interval=relativedelta(months=1))", "same length"),
        ("[Asset('a'), 'b']", "assets or None, got: `list`"),
    ],
)
def test_mistakes_are_told_with_the_line(project, written, sentence):
    with pytest.raises(DefinitionError, match=sentence) as caught:
        schedule_of(project, written)
    assert "the schedule of DAG `flow` cannot be used" in caught.value.message
    assert caught.value.line is not None


@pytest.mark.parametrize(
    ("written", "sentence"),
    [
        ("Asset('')", "to be a word"),
        ("Asset()", "needs a name or a uri"),
        ("Asset('airflow://x')", "reserved"),
        ("Asset('context')", "cannot be called `context`"),
        ("Asset('x' * 1501)", "at most 1500"),
        ("AssetAny(Asset('a'), 5)", "to be made of assets"),
    ],
)
def test_assets_that_make_no_sense_are_refused(project, written, sentence):
    with pytest.raises(HeadraceError, match=sentence):
        schedule_of(project, written)


@pytest.mark.parametrize(
    ("uri", "normalized"),
    [
        ("S3://user:secret@bucket/a//?b=2&a=1#part", "s3://bucket/a?a=1&b=2"),
        ("s3://bucket", "s3://bucket/"),
        ("x-my://A/b/", "x-my://A/b/"),
        ("plain text", "plain text"),
        ("ftp://user@host/x", "ftp://user@host/x"),
    ],
)
def test_uris_are_normalized(project, uri, normalized):
    from headrace.authoring.dag.assets import Asset

    assert Asset("name", uri).uri == normalized


@pytest.mark.parametrize(
    ("option", "written", "expected"),
    [
        ("CRON_DATA_INTERVALS", "'@daily'", True),
        ("DELTA_DATA_INTERVALS", "timedelta(days=1)", True),
        ("DELTA_DATA_INTERVALS", "'@daily'", False),
    ],
)
def test_the_meaning_of_airflow_2_is_chosen_by_its_own_options(project, monkeypatch, option, written, expected):
    monkeypatch.setattr(installation_defaults, option, True)
    assert schedule_of(project, written).spec["intervals"] is expected


def test_old_names_lead_to_the_same_things(project):
    source = """
    from airflow.datasets import Dataset, DatasetAlias, DatasetAll
    from airflow.datasets.metadata import Metadata
    from airflow import DAG
    from airflow.operators.empty import EmptyOperator
    from airflow.timetables.datasets import DatasetOrTimeSchedule
    from airflow.timetables.interval import CronDataIntervalTimetable
    orders = Dataset("s3://shop/orders", extra={"k": 1})
    timetable = CronDataIntervalTimetable("@daily", timezone="UTC")
    with DAG("flow", schedule=DatasetOrTimeSchedule(timetable=timetable, datasets=(orders & DatasetAlias("x")))):
        EmptyOperator(task_id="a", outlets=[orders], inlets=[DatasetAlias("x")])
    """
    workflow = project.workflow(source)
    assert workflow.schedule.spec["time"]["spec"]["intervals"] is True
    assert [(use.name, use.kind, use.role, use.task) for use in workflow.assets] == [
        ("s3://shop/orders", "asset", "schedule", ""),
        ("x", "alias", "schedule", ""),
        ("s3://shop/orders", "asset", "outlet", "a"),
        ("x", "alias", "inlet", "a"),
    ]
    assert workflow.assets[0].extra == {"k": 1}
    assert workflow.nodes[1].operator == "empty", "the engine cannot emit events by itself"


def test_a_timetable_may_build_on_one_of_airflow_s(project):
    source = HEAD.replace(
        "class Mine(Timetable):",
        """class Late(CronTriggerTimetable):
    def next_dagrun_info(self, *, last_automated_data_interval, restriction):
        info = super().next_dagrun_info(
            last_automated_data_interval=last_automated_data_interval, restriction=restriction
        )
        return DagRunInfo(info.run_after.add(minutes=5), info.data_interval)

class Mine(Timetable):""",
    )
    file = project.load(
        source.replace("ARGUMENTS", "schedule=Late('0 3 * * *', timezone='UTC'), catchup=True").replace(
            "datetime(2026, 1, 1)", "pendulum.datetime(2026, 1, 1)"
        )
    )
    from headrace.authoring import SlotQuestion

    first = file.tell_slot(SlotQuestion(workflow="flow"))
    assert (first.logical_time.hour, first.run_at.minute) == (3, 5)
    question = SlotQuestion(workflow="flow", last_start=first.interval_start, last_end=first.interval_end)
    assert file.tell_slot(question).logical_time == datetime(2026, 1, 2, 3, tzinfo=UTC)
    manual = file.tell_slot(SlotQuestion(workflow="flow", manual_at=datetime(2026, 5, 1, tzinfo=UTC)))
    assert manual.interval_start == datetime(2026, 5, 1, tzinfo=UTC)


def test_schedules_can_be_read_back(project):
    schedule = schedule_of(project, "CronTriggerTimetable('0 3 * * *', timezone='Asia/Tokyo')")
    assert timetable_for(schedule, "UTC").first(datetime(2025, 1, 1, tzinfo=UTC)).logical_time.hour == 18
