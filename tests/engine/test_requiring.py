"""`require>` and `call_dag>`, and both families calling each other, on the real engine and both databases."""

from __future__ import annotations

import pytest

from headrace.store import list_runs, workflows_named
from headrace.testing.engine import Engine

CHILD = """
    +work:
      sh>: test ! -e ${flag}
      _export: {flag: FOLDER/broken}
    +told: {echo>: "child of ${session_time} ${n}", _export: {}}
    _export: {n: none}
"""
DAG = """
    from airflow.sdk import DAG, task
    from headrace import DigWorkflowOperator

    with DAG("report"):
        @task
        def count(params, dag_run):
            if dag_run.conf.get("breaks"):
                raise ValueError("broken")
            return {"rows": dag_run.conf.get("rows", 1), "day": str(dag_run.logical_date.date())}
        count()

    with DAG("parent"):
        DigWorkflowOperator(task_id="load", workflow="child", workflow_params={"n": "{{ ds }}"}, retries=0)
"""


@pytest.fixture
def engine(prepared_url, tmp_path):
    engine = Engine(tmp_path, prepared_url)
    yield engine
    engine.close()


def save_child(engine, text=CHILD):
    """The child workflow is there and has no run."""
    engine.start_dig(text.replace("FOLDER", str(engine.folder)), "child", session="2020-01-01")
    engine.settle()


def finish(engine, run):
    for _ in range(20):
        engine.settle()
        if run.state in ("success", "failed"):
            return run
        engine.advance(seconds=10)
    raise AssertionError(f"still {run.state}: {run.states()}")


def runs_of(engine, name):
    """Runs of a workflow, without the one that only saved it."""
    with engine.store.read() as tx:
        (row,) = workflows_named(tx, name)
        return [run for run in reversed(list_runs(tx, row.id)) if run.logical_at != 1_577_836_800_000_000]


def test_the_other_workflow_runs_for_the_same_session_and_is_waited_for(engine):
    save_child(engine)
    run = engine.start_dig("+a: {require>: child}\n+b: {echo>: done}", session="2026-01-31")
    engine.settle()
    assert run.states() == {"+main+a": "up_for_reschedule", "+main+b": "none"}
    finish(engine, run)
    assert (run.state, run.tries("+a")) == ("success", ["up_for_reschedule", "success"])
    (child,) = runs_of(engine, "child")
    assert (child.state, child.logical_at) == ("success", 1_769_817_600_000_000)


def test_a_session_that_has_run_already_is_enough(engine):
    save_child(engine)
    run = engine.start_dig("+a: {require>: child, session_time: '2020-01-01T00:00:00+00:00'}")
    engine.settle()
    assert (run.state, run.tries("+a"), runs_of(engine, "child")) == ("success", ["success"], [])


@pytest.mark.parametrize(
    ("options", "state", "attempts"),
    [
        ("", "failed", 1),
        ("ignore_failure: true", "success", 1),
        ("rerun_on: failed", "success", 2),
        ("rerun_on: none", "failed", 1),
    ],
)
def test_a_session_that_failed_before(engine, options, state, attempts):
    (engine.folder / "broken").touch()
    save_child(engine)
    (engine.folder / "broken").unlink()
    run = engine.start_dig(f"+a: {{require>: child, session_time: '2020-01-01T00:00:00Z', {options}}}")
    finish(engine, run)
    assert run.state == state
    with engine.store.read() as tx:
        (row,) = workflows_named(tx, "child")
        (child,) = list_runs(tx, row.id)
    assert child.attempt_number == attempts
    if state == "failed":
        words = f"Dependent workflow failed. Session id: {child.id}, attempt id: {child.attempt_id}"
        assert run.error("+a").startswith(words)


def test_a_session_that_went_well_runs_again_if_asked_to(engine):
    save_child(engine)
    run = engine.start_dig("+a: {require>: child, session_time: '2020-01-01 00:00:00', rerun_on: all}")
    finish(engine, run)
    with engine.store.read() as tx:
        (row,) = workflows_named(tx, "child")
        (child,) = list_runs(tx, row.id)
    assert (run.state, child.attempt_number) == ("success", 2)


@pytest.mark.parametrize(
    ("task", "message"),
    [
        ("require>: chid", "there is no workflow `chid`"),
        ("require>: child, project_name: nope", "there is no workflow `child` in project `nope`"),
        ("require>: child, rerun_on: maybe", "expected `rerun_on` to be none, failed or all, got: `maybe`"),
        ("require>: child, session_time: noon", "expected `session_time` to be a time like"),
        ("require>: child, project_id: 99", "expected `project_id` to be that of this project, got: `99`"),
    ],
)
def test_mistakes_in_what_is_required(engine, task, message):
    save_child(engine)
    run = engine.start_dig(f"+a: {{{task}}}")
    engine.settle()
    assert run.state == "failed"
    assert message in run.error("+a")
    assert runs_of(engine, "child") == []


def test_a_dig_task_runs_a_dag_and_sees_what_it_returned(engine):
    save_child(engine)
    engine.start_dag(DAG, "report", session="2020-01-01")
    engine.settle()
    run = engine.start_dig(
        """
        +a: {call_dag>: report, params: {rows: 5}, results: [count, nothing]}
        +b: {echo>: "rows ${call_dag.results.count.rows} of ${call_dag.results.count.day} ${call_dag.last_state}"}
        """,
        session="2026-01-31",
    )
    finish(engine, run)
    assert run.state == "success"
    assert "rows 5 of 2026-01-31 success" in run.log("+b")
    (report,) = runs_of(engine, "report")
    assert (report.state, report.params) == ("success", '{"rows":5}')


def test_a_dag_that_fails_fails_the_task_that_required_it(engine):
    engine.start_dag(DAG, "report", session="2020-01-01")
    engine.advance(seconds=1)  # the second run gets a name of its own
    run = engine.start_dig("+a: {require>: report, params: {breaks: 1}}\n_error: {echo>: 'oh ${error.message}'}")
    finish(engine, run)
    assert run.state == "failed"
    assert "oh Dependent workflow failed." in run.log("^error")


@pytest.mark.parametrize("state", ["success", "failed"])
def test_a_dag_has_a_dig_workflow_as_one_of_its_tasks(engine, state):
    save_child(engine)
    if state == "failed":
        (engine.folder / "broken").touch()
    run = engine.start_dag(DAG, "parent", session="2026-01-31")
    engine.settle()
    (child,) = runs_of(engine, "child")
    assert (run.states(), child.state) == ({"load": "deferred"}, state)
    run.fire("load", {"run_id": child.key, "state": child.state})
    engine.settle()
    assert run.state == state
    if state == "success":
        assert run.value("load") == {"run_id": child.key, "state": "success"}
        assert child.params == '{"n":"2026-01-31"}'
    else:
        assert run.error("load") == f"run `{child.key}` of workflow `child` ended as failed"


def test_the_operator_that_starts_dags_starts_dig_workflows_too(engine):
    save_child(engine)
    engine.advance(seconds=1)
    run = engine.start_dag("""
        from airflow.providers.standard.operators.trigger_dagrun import TriggerDagRunOperator
        from airflow.sdk import DAG
        with DAG("starter"):
            TriggerDagRunOperator(task_id="go", trigger_dag_id="child", conf={"n": 3})
    """)
    engine.settle()
    (child,) = runs_of(engine, "child")
    assert (run.state, child.state, child.params) == ("success", "success", '{"n":3}')


def test_params_are_shared_with_variables_of_dags(engine):
    run = engine.start_dig(
        """
        +set: {param_set>: , color: "blue ${session_date}"}
        +get: {param_get>: , color: my_color, missing: nothing}
        +show: {echo>: "<${my_color}|${nothing}>"}
        """,
        session="2026-01-31",
    )
    engine.settle()
    assert "<blue 2026-01-31|>" in run.log("+show")
    dag = engine.start_dag("""
        from airflow.sdk import DAG, Variable, task
        with DAG("reader"):
            @task
            def read(): return Variable.get("color")
            read()
    """)
    engine.settle()
    assert dag.value("read") == "blue 2026-01-31"


def test_a_wait_lasts_as_long_by_the_clock_of_the_store(engine):
    run = engine.start_dig("+a: {wait>: 1h}")
    engine.settle()
    engine.advance(seconds=3599)
    engine.settle()
    assert run.states() == {"+main+a": "up_for_reschedule"}
    engine.advance(seconds=1)
    engine.settle()
    assert (run.state, run.tries("+a")) == ("success", ["up_for_reschedule", "success"])
