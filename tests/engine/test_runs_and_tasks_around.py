"""What `ti` and `dag_run` tell about their own run and about earlier ones, asked by tasks of real runs."""

from __future__ import annotations

import pytest

DAG_FILE = """
    from airflow.configuration import conf as configuration
    from airflow.sdk import DAG, task
    with DAG("d", schedule="@daily") as dag:
        @task
        def first(): return 7
        @task
        def shaky(params):
            if params.get("breaks"): raise ValueError("no")
        @task(trigger_rule="all_done")
        def look(ti, dag_run, conf, task_reschedule_count):
            before, good, bad = ti.get_previous_ti(), ti.previous_ti_success, dag_run.get_previous_dagrun("failed")
            run = ti.get_previous_dagrun()
            return {{
                "before": before and [before.run_id, before.state, before.try_number, before.xcom_pull("first")],
                "good": good and good.run_id,
                "run": run and [run.run_id, run.state, run.conf, str(run.logical_date), run.get_state()],
                "bad": bad and [bad.run_id, bad.get_task_instance("shaky").state],
                "began": [before and before.start_date == ti.get_previous_start_date(), before is None],
                "earlier": str(ti.get_previous_logical_date()),
                "own": {{one.task_id: one.state for one in dag_run.get_task_instances()}},
                "done": sorted(one.task_id for one in dag_run.get_task_instances(["success", "failed"])),
                "conf": [conf is configuration, dag_run.conf, dag_run.dag.dag_id, task_reschedule_count],
                "url": ti.log_url,
            }}
        [first(), shaky()] >> look()
"""


@pytest.fixture
def look(engine, monkeypatch):
    monkeypatch.setenv("AIRFLOW__API__BASE_URL", "https://flows.example.com/")

    def run(day, **params):
        found = engine.start_dag(
            DAG_FILE.format(), session=f"2026-02-0{day}T00:00:00+00:00", run_key=f"day: {day}", params=params
        )
        engine.settle()
        assert found.states()["look"] == "success", found.error("look")
        return found.key, found.value("look")

    return run


def test_tasks_and_runs_before(look):
    first_key, first = look(1, breaks=True)
    assert (first["before"], first["good"], first["run"], first["bad"]) == (None, None, None, None)
    assert first["began"] == [None, True]
    second_key, second = look(2)
    assert second["before"] == [first_key, "success", 1, 7]
    assert second["run"] == [first_key, "success", {"breaks": True}, "2026-02-01 00:00:00+00:00", "success"]
    assert (second["bad"], second["began"]) == (None, [True, False])
    # The last task ended well, so the first run did, too; but one of its tasks has failed.
    _, third = look(3)
    assert third["before"][0] == third["good"] == third["run"][0] == second_key
    assert third["earlier"] == "2026-02-02 00:00:00+00:00"


def test_the_own_run(look):
    _, found = look(1, breaks=True)
    assert found["own"] == {"first": "success", "shaky": "failed", "look": "running"}
    assert found["done"] == ["first", "shaky"]
    assert found["conf"] == [True, {"breaks": True}, "d", 0]
    assert found["url"].startswith("https://flows.example.com/dags/d/runs/day%3A%201/tasks/look")
    assert found["url"].endswith("/tasks/look?try_number=1")


def test_a_sensor_counts_its_looks(engine):
    run = engine.start_dag("""
    from airflow.sdk import DAG, task
    with DAG("d"):
        @task.sensor(mode="reschedule", poke_interval=10)
        def three(task_reschedule_count, ti):
            assert (ti.get_first_reschedule_date() is None) == (task_reschedule_count == 0)
            return task_reschedule_count == 2
        three()
    """)
    for _ in range(2):
        engine.settle()
        assert run.states() == {"three": "up_for_reschedule"}
        engine.advance(seconds=10)
    engine.settle()
    assert run.states() == {"three": "success"}


def test_failed_tasks_of_earlier_runs_are_found_by_their_state(engine):
    source = """
    from airflow.sdk import DAG, task
    with DAG("d") as dag:
        @task
        def only(ti, params):
            if params.get("breaks"): raise ValueError("no")
            return [ti.get_previous_ti("failed").run_id, ti.get_previous_dagrun("failed").run_id]
        only()
    """
    broken = engine.start_dag(source, session="2026-02-01T00:00:00+00:00", run_key="1", params={"breaks": True})
    engine.settle()
    stopped = engine.start_dag(source, session="2026-02-02T00:00:00+00:00", run_key="2")
    stopped.cancel()
    fine = engine.start_dag(source, session="2026-02-03T00:00:00+00:00", run_key="3")
    engine.settle()
    # What was stopped has failed, in Airflow's words.
    assert fine.value("only") == [stopped.key, stopped.key]
    assert broken.state == "failed"
