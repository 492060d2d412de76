"""Clearing a task clears what depends on it in other workflows, where a marker says so."""

from __future__ import annotations

import pytest

from headrace.actions.clear import clear
from headrace.actions.selecting import Selection
from headrace.errors import StateError
from headrace.testing.engine import Engine

FLOW = """
    from airflow.sdk import DAG, task
    from airflow.operators.empty import EmptyOperator
    from airflow.sensors.external_task import ExternalTaskMarker

    @task
    def work():
        pass

    with DAG("parent"):
        work.override(task_id="make")() >> ExternalTaskMarker(
            task_id="mark", external_dag_id="child", external_task_id="use", {options})

    with DAG("child"):
        work.override(task_id="before")() >> work.override(task_id="use")() >> ExternalTaskMarker(
            task_id="mark", external_dag_id="parent", external_task_id="make")
"""


@pytest.fixture
def engine(tmp_path):
    engine = Engine(tmp_path)
    yield engine
    engine.close()


def start_both(engine, options=""):
    source = FLOW.replace("{options}", options)
    runs = [engine.start_dag(source, name, session="2026-02-01", run_key="r") for name in ("parent", "child")]
    engine.settle()
    assert [run.state for run in runs] == ["success", "success"]
    return runs


def tries(run):
    return {name: run.task(name).try_number for name in run.states()}


def test_marked_tasks_of_the_run_for_the_same_date_are_cleared_too(engine):
    parent, child = start_both(engine)
    clear(engine.store, engine.clock, str(parent.id), ["make"], Selection(downstream=True))
    engine.settle()
    # The child's marker leads back to the parent, which is cleared already.
    assert tries(parent) == {"make": 2, "mark": 2}
    assert tries(child) == {"before": 1, "use": 2, "mark": 2}
    assert (parent.state, child.state) == ("success", "success")


def test_without_the_marker_nothing_else_is_cleared(engine):
    parent, child = start_both(engine)
    clear(engine.store, engine.clock, str(parent.id), ["make"])
    engine.settle()
    assert tries(child) == {"before": 1, "use": 1, "mark": 1}


def test_a_marker_may_be_about_another_date(engine):
    parent, child = start_both(engine, "logical_date='{{ logical_date.subtract(days=1) }}'")
    clear(engine.store, engine.clock, str(parent.id), ["make"], Selection(downstream=True))
    engine.settle()
    assert tries(child) == {"before": 1, "use": 1, "mark": 1}


def test_markers_do_not_lead_further_than_they_say(engine):
    parent, _ = start_both(engine, "recursion_depth=1")
    with pytest.raises(StateError, match="lead through more than 1 workflows"):
        clear(engine.store, engine.clock, str(parent.id), ["make"], Selection(downstream=True))
    assert tries(parent) == {"make": 1, "mark": 1}
