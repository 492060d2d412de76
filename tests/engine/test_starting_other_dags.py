"""A DAG that starts another one, and waits for it or not, on the real engine."""

from __future__ import annotations

import pytest

from headrace.store import list_runs, list_tasks, set_paused, workflows_named

FLOW = """
    from datetime import datetime, timedelta, timezone
    from airflow.exceptions import DagRunTriggerException, DownstreamTasksSkipped
    from airflow.operators.python import PythonOperator
    from airflow.providers.standard.operators.trigger_dagrun import TriggerDagRunOperator
    from airflow.providers.standard.sensors.external_task import ExternalTaskSensor
    from airflow.sdk import DAG, task

    with DAG("target"):
        @task
        def work(params, dag_run):
            if params.get("breaks"):
                raise ValueError("broken")
            return dict(dag_run.conf)
        work()

    with DAG("starter"):
        {body}
"""


@pytest.fixture
def start(engine):
    def start(body, **options):
        run = engine.start_dag(FLOW.replace("{body}", body), "starter", **options)
        engine.settle()
        return run

    return start


def targets(engine):
    """The runs of the other DAG, oldest first."""
    with engine.store.read() as tx:
        (row,) = workflows_named(tx, "target")
        return list(reversed(list_runs(tx, row.id)))


def trigger(arguments=""):
    return f'TriggerDagRunOperator(task_id="go", trigger_dag_id="target", {arguments})'


def test_a_run_is_started_with_its_conf_and_not_waited_for(engine, start):
    run = start(trigger("conf={'day': '{{ ds }}', 'n': 1}"))
    (target,) = targets(engine)
    assert (run.state, target.state) == ("success", "success")
    assert run.value("go", "trigger_run_id") == target.key == "manual__2026-02-03T04:05:06+00:00"
    assert target.params == '{"day":"2026-02-03","n":1}'


def test_key_and_date_are_templates(engine, start):
    start(
        trigger("trigger_run_id='for_{{ ds }}', logical_date='{{ logical_date.subtract(days=1) }}', conf='{\"a\": 1}'")
    )
    (target,) = targets(engine)
    assert (target.key, target.params) == ("for_2026-02-03", '{"a":1}')
    assert target.logical_at == 1_770_005_106_000_000 + 86_400_000_000 - 86_400_000_000


@pytest.mark.parametrize(
    ("arguments", "state"),
    [
        ("", "failed"),
        ("skip_when_already_exists=True", "skipped"),
        ("reset_dag_run=True", "success"),
    ],
)
def test_a_run_that_exists_already(engine, start, arguments, state):
    body = trigger(f"trigger_run_id='mine', retries=3, {arguments}")
    start(body)
    second = start(body, run_key="second", session="2026-02-01")
    assert second.states() == {"go": state}
    (target,) = targets(engine)
    assert target.state == "success"
    with engine.store.read() as tx:
        (work,) = [one for one in list_tasks(tx, target.attempt_id) if one.key == "work"]
    assert work.try_number == (2 if state == "success" else 1)


@pytest.mark.parametrize(
    ("conf", "arguments", "state"),
    [
        ("{}", "", "success"),
        ("{'breaks': 1}", "", "failed"),
        ("{'breaks': 1}", "allowed_states=['success', 'failed'], failed_states=[]", "success"),
    ],
)
def test_waiting_for_the_end(engine, start, monkeypatch, conf, arguments, state):
    # One process serves both runs here, so the waiting task must let the other one work.
    monkeypatch.setattr("headrace.operators.trigger_dag_run.time.sleep", lambda seconds: engine.settle_others())
    waiting = engine.agent
    engine.settle_others = lambda: settle_with_another_agent(engine, waiting)
    run = start(trigger(f"wait_for_completion=True, poke_interval=1, conf={conf}, {arguments}"))
    assert run.states() == {"go": state}
    if state == "failed":
        assert run.error("go") == "run `manual__2026-02-03T04:05:06+00:00` of DAG `target` ended as failed"


def settle_with_another_agent(engine, waiting):
    engine.agent = engine._start_agent(1)
    try:
        engine.settle()
    finally:
        engine.agent = waiting


def test_a_paused_dag_gets_a_run_that_waits_unless_that_is_a_failure(engine, start):
    start("pass")
    with engine.store.begin() as tx:
        (row,) = workflows_named(tx, "target")
        set_paused(tx, row.id, True)
    assert start(trigger(), session="2026-02-01", run_key="second").state == "success"
    assert [run.state for run in targets(engine)] == ["queued"]
    refused = start(trigger("fail_when_dag_is_paused=True"), session="2026-02-02", run_key="third")
    assert refused.error("go") == "DAG `target` is paused"


def test_a_dag_that_is_not_there(start):
    run = start('TriggerDagRunOperator(task_id="go", trigger_dag_id="targit")')
    assert run.error("go") == "there is no workflow `targit`\nhint: did you mean `target`?"


def test_a_run_that_is_told_when_to_begin_has_no_logical_date(engine, start):
    start(trigger("run_after=datetime(2026, 2, 3, 5, tzinfo=timezone.utc)"))
    (target,) = targets(engine)
    assert (target.logical_at, target.state) == (None, "queued")
    engine.advance(hours=1)
    engine.settle()
    assert targets(engine)[0].state == "success"


def test_many_instances_start_many_runs(engine, start):
    confs = '[{"n": 1}, {"n": 2}, {"n": 3}]'
    run = start(f'TriggerDagRunOperator.partial(task_id="go", trigger_dag_id="target").expand(conf={confs})')
    assert run.state == "success"
    assert [target.params for target in targets(engine)] == ['{"n":1}', '{"n":2}', '{"n":3}']


def test_a_wish_for_a_run_may_be_raised_by_any_operator(engine, start):
    run = start("""
        def wish():
            raise DagRunTriggerException(
                trigger_dag_id="target", dag_run_id="wished", conf={}, reset_dag_run=False, wait_for_completion=False,
                skip_when_already_exists=False, allowed_states=[], failed_states=[], poke_interval=1, deferrable=False)
        PythonOperator(task_id="go", python_callable=wish)
    """)
    assert run.states() == {"go": "success"}
    assert [target.key for target in targets(engine)] == ["wished"]


@pytest.mark.parametrize("target", ["", 'external_task_id="work", '], ids=["run", "task"])
def test_a_sensor_waits_for_a_dag_that_is_not_there_yet(engine, start, target):
    run = start(f'ExternalTaskSensor(task_id="wait", external_dag_id="later", {target}mode="reschedule")')
    assert run.states() == {"wait": "up_for_reschedule"}
    assert "there is no workflow `later`" in run.log("wait")


def test_a_sensor_that_checks_for_the_other_dag_does_not_wait(engine, start):
    run = start('ExternalTaskSensor(task_id="wait", external_dag_id="later", check_existence=True, retries=0)')
    assert run.states() == {"wait": "failed"}


def test_a_sensor_waits_for_the_other_dag(engine, start):
    run = start(
        'ExternalTaskSensor(task_id="wait", external_dag_id="target", external_task_id="work", mode="reschedule")'
    )
    assert run.states() == {"wait": "up_for_reschedule"}
    other = engine.start_dag(FLOW.replace("{body}", "pass"), "target", session="2026-02-03T04:05:06Z")
    engine.settle()
    assert other.state == "success"
    engine.advance(60)
    engine.settle()
    assert run.state == "success"
