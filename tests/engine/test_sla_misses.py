"""`sla` of tasks: from the DAG file to the function that is called with five arguments, and the e-mail."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from headrace.authoring import load_file
from headrace.scheduler import DeadlineKeeper
from headrace.store import list_errands, list_misses
from headrace.testing.engine import Engine
from headrace.testing.mail_box import MailBox

EXAMPLE = Path(__file__).parents[2] / "examples" / "mission" / "example_sla_dag.py"

FLOW = """
import json
from datetime import datetime, timedelta
from pathlib import Path
from airflow import DAG
from airflow.models.slamiss import SlaMiss
from airflow.operators.python import PythonOperator

def tell(*args):
    dag, task_list, blocking_task_list, slas, blocking_tis = args
    told = {
        "dag": dag.dag_id, "task_list": task_list, "blocking_task_list": blocking_task_list,
        "slas": [(sla.task_id, sla.dag_id, str(sla.execution_date), isinstance(sla, SlaMiss)) for sla in slas],
        "blocking_tis": [(ti.task_id, ti.state, ti.map_index) for ti in blocking_tis],
    }
    with Path(__file__).with_name("told.jsonl").open("a") as file:
        print(json.dumps(told), file=file)

def broken(*args):
    raise RuntimeError("the callback itself")

def fail():
    raise ValueError("no")

with DAG("flow", schedule="@hourly", start_date=datetime(2026, 2, START), catchup=CATCHUP, OPTIONS) as dag:
    fast = PythonOperator(task_id="fast", python_callable=lambda: 1, sla=timedelta(hours=1))
    bad = PythonOperator(
        task_id="bad", python_callable=fail, sla=timedelta(minutes=10), retries=9, retry_delay=timedelta(hours=9),
        email=["a@example.com", "b@example.com"],
    )
    late = PythonOperator(task_id="late", python_callable=lambda: 1, sla=timedelta(minutes=10))
    fast >> bad >> late
"""


@pytest.fixture
def engine(tmp_path):
    engine = Engine(tmp_path, start=datetime(2026, 2, 3, 3, 59, tzinfo=UTC))
    yield engine
    engine.close()


@pytest.fixture
def mail_box(monkeypatch):
    box = MailBox()
    for name, value in box.environment.items():
        monkeypatch.setenv(name, value)
    yield box
    box.close()


@pytest.fixture
def told(engine):
    def read() -> list[dict]:
        import json

        path = engine.folder / "project" / "told.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    return read


def save(engine, options="sla_miss_callback=tell", *, catchup="False", start="3, 4"):
    """Save the file at 03:59. The run that brings it in is a manual one."""
    source = FLOW.replace("OPTIONS", options).replace("CATCHUP", catchup).replace("START", start)
    run = engine.start_dag(source)
    run.cancel()
    engine.settle()
    return run


def misses(engine):
    with engine.store.read() as tx:
        return [(row.task, row.run_key, row.is_told, row.is_mailed) for row in list_misses(tx)]


RUN = "scheduled__2026-02-03T04:00:00+00:00"


def test_late_tasks_of_a_scheduled_run_are_told_once_and_go_on(engine, told, mail_box):
    save(engine)
    engine.advance(minutes=1)
    engine.settle()
    engine.advance(minutes=10)
    engine.settle()
    assert sorted(misses(engine)) == [("bad", RUN, True, True), ("late", RUN, True, True)]
    (call,) = told()
    assert call == {
        "dag": "flow",
        "task_list": "bad on 2026-02-03T04:00:00+00:00\nlate on 2026-02-03T04:00:00+00:00",
        "blocking_task_list": "bad on 2026-02-03T04:00:00+00:00",
        "slas": [[task, "flow", "2026-02-03 04:00:00+00:00", True] for task in ("bad", "late")],
        "blocking_tis": [["bad", "up_for_retry", -1]],
    }
    (message,) = (one for one in mail_box.messages if "SLA" in one["Subject"])
    assert (message["Subject"], message["To"]) == ("[airflow] SLA miss on DAG=flow", "a@example.com, b@example.com")
    assert "late on 2026-02-03T04:00:00+00:00" in message.get_content()
    engine.advance(minutes=20)
    engine.settle()
    assert len(told()) == 1


def test_tasks_that_have_not_even_begun_are_late(engine, told):
    save(engine)
    engine.advance(minutes=1)
    engine.advance(minutes=10)  # nobody ran anything
    engine.settle()
    assert told()[0]["task_list"].count("\n") == 1
    assert told()[0]["blocking_task_list"] == "fast on 2026-02-03T04:00:00+00:00"


def test_manual_runs_are_not_checked(engine, told):
    manual = save(engine, start="3, 12")
    engine.advance(minutes=50)
    engine.settle()
    assert manual.state == "canceled"
    assert (misses(engine), told()) == ([], [])


def test_misses_of_several_runs_share_one_call(engine, told):
    save(engine, "sla_miss_callback=tell, max_active_runs=2", catchup="True", start="2, 12")
    (call,) = told()
    assert len(call["slas"]) > 40
    assert len({date for _, _, date, _ in call["slas"]}) == 16, "of runs that wait for their turn, too"


def test_a_broken_callback_leaves_the_miss_untold_and_the_next_one_is_called(engine, told):
    save(engine, "sla_miss_callback=[broken]")
    engine.advance(minutes=1)
    engine.advance(minutes=10)
    engine.settle()
    assert {row[2:] for row in misses(engine)} == {(False, False)}
    with engine.store.read() as tx:
        assert [row.error.message for row in list_errands(tx)] == ["the callback itself"]


def test_the_setting_turns_it_off(engine, told):
    keeper = next(index for index, one in enumerate(engine.services) if isinstance(one, DeadlineKeeper))
    engine.services[keeper] = DeadlineKeeper(engine.store, checks_tasks=False)
    save(engine)
    engine.advance(minutes=1)
    engine.advance(minutes=30)
    engine.settle()
    assert (misses(engine), told()) == ([], [])
    engine.services[keeper] = DeadlineKeeper(engine.store)
    engine.advance(minutes=1)
    assert misses(engine) == [], "what was not looked at in its time is not looked at later"


def test_the_example_of_slas_tells_its_five_arguments(engine, monkeypatch):
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    first = engine.start_dag(EXAMPLE.read_text())
    first.cancel()
    engine.settle()
    # The run of 03:58 was started at 03:59, when both its tasks were late already.
    with engine.store.read() as tx:
        (errand,) = list_errands(tx)
    out = (engine.folder / "logs" / errand.log).read_text()
    for said in (
        "'dag': <DAG: example_sla_dag>",
        "sleep_20 on 2026-02-03T03:58:00+00:00",
        "SlaMiss(task_id='sleep_30'",
    ):
        assert said in out
    assert {row[0] for row in misses(engine)} == {"sleep_20", "sleep_30"}


def test_what_has_no_effect_is_said(tmp_path):
    (tmp_path / "flow.py").write_text(
        "from datetime import timedelta\nfrom airflow.sdk import DAG, task\n"
        'with DAG("flow"):\n    task(lambda: 1, task_id="a", sla=timedelta(1))()\n'
    )
    (workflow,) = load_file(tmp_path, "flow.py").workflows
    assert workflow.warnings == ("the `sla` of tasks of DAG `flow` has no effect: only scheduled runs are checked",)
