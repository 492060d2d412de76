"""Deadline alerts of runs, from the DAG file to the callback."""

from __future__ import annotations

import json

import pytest

from headrace.errors import DefinitionError
from headrace.store import list_errands, list_misses
from headrace.store.sql import Sql

AHEAD = Sql("SELECT name FROM deadline WHERE missed_at IS NULL")

FLOW = """
import json
from datetime import datetime, timedelta, timezone
from pathlib import Path
from airflow.sdk import DAG, AsyncCallback, BaseNotifier, DeadlineAlert, DeadlineReference, SyncCallback, task
from airflow.sdk.definitions.deadline import BaseDeadlineReference, VariableInterval, deadline_reference

def write(**told):
    with Path(__file__).with_name("told.jsonl").open("a") as file:
        print(json.dumps(told), file=file)

async def tell(name, context):
    deadline, run = context["deadline"], context["dag_run"]
    write(name=name, at=str(deadline["deadline_time"]), dag=run["dag_id"], run=run["dag_run_id"])

def plain(name):
    write(name=name)

class Pager(BaseNotifier):
    template_fields = ("text",)
    def __init__(self, text):
        self.text = text
    def notify(self, context):
        write(text=self.text)

@deadline_reference
class Custom(BaseDeadlineReference):
    def _evaluate_with(self, *, session, **kwargs):
        return None

queued = lambda **interval: DeadlineAlert(
    DeadlineReference.DAGRUN_QUEUED_AT, timedelta(**interval), AsyncCallback(tell, {"name": "queued"}), name="queued"
)
with DAG("flow", DEADLINE):
    @task(retries=1, retry_delay=timedelta(minutes=10))
    def work(**context):
        if context["ti"].try_number % 2:
            raise ValueError("not yet")
    work()
"""


@pytest.fixture
def told(engine):
    def read() -> list[dict]:
        path = engine.folder / "project" / "told.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    return read


def start(engine, deadline, **options):
    return engine.start_dag(FLOW.replace("DEADLINE", f"deadline={deadline}"), **options)


def ahead(engine):
    with engine.store.read() as tx:
        return tx.run(AHEAD)


def test_a_run_that_is_not_done_in_time_is_told_once_and_goes_on(engine, told):
    run = start(engine, "queued(minutes=5)")
    engine.settle()
    engine.advance(minutes=4)
    engine.settle()
    assert told() == []
    engine.advance(minutes=2)
    engine.settle()
    assert told() == [{"name": "queued", "at": "2026-02-03 04:10:06+00:00", "dag": "flow", "run": run.key}]
    engine.advance(minutes=10)
    engine.settle()
    assert (run.state, len(told())) == ("success", 1)
    with engine.store.read() as tx:
        assert [(row.task, row.name, bool(row.is_told)) for row in list_misses(tx)] == [("", "queued", True)]


def test_a_run_that_is_done_in_time_has_no_deadline_any_more(engine, told):
    run = start(engine, "queued(minutes=15)")
    engine.settle()
    assert ahead(engine) == [("queued",)]
    engine.advance(minutes=10)
    engine.settle()
    assert (run.state, ahead(engine)) == ("success", [])


def test_clearing_a_run_counts_from_then_on(engine, told):
    run = start(engine, "queued(minutes=15)")
    engine.settle()
    engine.advance(minutes=10)
    engine.settle()
    run.clear("work")
    engine.settle()
    assert ahead(engine) == [("queued",)]
    engine.advance(minutes=9)
    engine.settle()
    assert (run.state, told()) == ("running", [])
    engine.advance(minutes=1)
    engine.settle()
    assert (run.state, told()) == ("success", [])


def test_a_run_that_failed_is_not_done(engine, told):
    source = FLOW.replace("retries=1", "retries=0").replace("DEADLINE", "deadline=queued(minutes=5)")
    run = engine.start_dag(source)
    engine.settle()
    engine.advance(minutes=6)
    engine.settle()
    assert (run.state, len(told())) == ("failed", 1)


@pytest.mark.parametrize(
    ("reference", "interval", "minutes"),
    [
        ("DeadlineReference.DAGRUN_LOGICAL_DATE", "timedelta(hours=-1, minutes=65)", 5),
        ("DeadlineReference.FIXED_DATETIME(datetime(2026, 2, 3, 4, 5, 6))", "timedelta(minutes=7)", 7),
        ("DeadlineReference.FIXED_DATETIME(datetime(2020, 2, 3, tzinfo=timezone.utc))", "timedelta(0)", 0),
    ],
)
def test_deadlines_count_from_what_they_say(engine, told, reference, interval, minutes):
    start(engine, f"[DeadlineAlert({reference}, {interval}, SyncCallback(plain, {{'name': 'x'}}))]")
    if minutes:
        engine.advance(minutes=minutes, seconds=-1)
        engine.settle()
        assert told() == []
        engine.advance(seconds=1)
    engine.settle()
    assert told() == [{"name": "x"}]


def test_average_needs_enough_runs_that_succeeded(engine, told):
    alert = "DeadlineAlert(DeadlineReference.AVERAGE_RUNTIME(5, 2), timedelta(0), SyncCallback(plain, {'name': 'x'}))"
    for _ in range(2):
        start(engine, alert)
        engine.settle()
        assert ahead(engine) == []
        engine.advance(minutes=10)
        engine.settle()
    start(engine, alert)
    engine.settle()
    assert ahead(engine) == [("deadline 1",)]
    engine.advance(minutes=9, seconds=59)
    assert told() == []


def test_notifiers_and_import_paths_are_called(engine, told):
    engine.write(
        "paging.py",
        "from pathlib import Path\ndef page(context): Path(PATH).write_text('paged')\n".replace(
            "PATH", repr(str(engine.folder / "paged"))
        ),
    )
    now = "DeadlineReference.DAGRUN_QUEUED_AT, timedelta(0)"
    text = "{{ dag_run.dag_id }} at {{ deadline.deadline_time }}"
    start(
        engine,
        f"[DeadlineAlert({now}, SyncCallback('paging.page')),"
        f" DeadlineAlert({now}, AsyncCallback(Pager, {{'text': '{text}'}}))]",
    )
    engine.settle()
    assert told() == [{"text": "flow at 2026-02-03 04:05:06+00:00"}]
    assert (engine.folder / "paged").read_text() == "paged"


def test_a_callback_that_fails_is_told_and_changes_nothing(engine):
    run = start(
        engine, "DeadlineAlert(DeadlineReference.DAGRUN_QUEUED_AT, timedelta(0), SyncCallback(plain, {'bad': 1}))"
    )
    engine.settle()
    with engine.store.read() as tx:
        (errand,) = list_errands(tx)
    assert (errand.kind, errand.state, run.state) == ("run_late", "failed", "running")
    assert "unexpected keyword argument" in errand.error.message


@pytest.mark.parametrize(
    ("deadline", "message"),
    [
        (
            "DeadlineAlert(DeadlineReference.Custom, timedelta(0), SyncCallback(plain))",
            "the reference `Custom` of deadline `deadline 1` of DAG `flow` is not one that Headrace can evaluate",
        ),
        (
            "DeadlineAlert(DeadlineReference.DAGRUN_QUEUED_AT, VariableInterval('nobody'), SyncCallback(plain))",
            "expected the variable `nobody` to be the whole number of seconds of a deadline of DAG `flow`",
        ),
    ],
)
def test_what_cannot_be_evaluated_is_refused(engine, deadline, message):
    with pytest.raises(DefinitionError, match=message):
        start(engine, deadline)


@pytest.mark.parametrize(
    "wrong",
    [
        "DeadlineAlert(DeadlineReference.DAGRUN_QUEUED_AT, timedelta(0), plain)",
        "DeadlineAlert(DeadlineReference.DAGRUN_QUEUED_AT, 5, SyncCallback(plain))",
        "DeadlineAlert(DeadlineReference.DAGRUN_QUEUED_AT, timedelta(0), AsyncCallback(plain))",
        "DeadlineAlert(DeadlineReference.DAGRUN_QUEUED_AT, timedelta(0), SyncCallback('no path'))",
        "DeadlineAlert(DeadlineReference.DAGRUN_QUEUED_AT, timedelta(0), SyncCallback(plain, {'context': 1}))",
        "DeadlineAlert(DeadlineReference.AVERAGE_RUNTIME(5, 0), timedelta(0), SyncCallback(plain))",
    ],
)
def test_mistakes_are_told_where_they_were_made(engine, wrong):
    with pytest.raises(Exception, match=r"expected|context|min_runs"):
        start(engine, wrong)
