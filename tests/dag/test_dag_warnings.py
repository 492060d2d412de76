"""What the engine does not act on is said, never swallowed."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest

from headrace import DAG, BaseOperator
from headrace.authoring.dag.unsupported import OF_DAG, OF_TASK, SILENT

SOURCE = """
from datetime import datetime
from airflow import DAG
from airflow.operators.empty import EmptyOperator

with DAG("flow", schedule=None, {of_dag}):
    for name in "abc":
        EmptyOperator(task_id=name, {of_task})
"""


@pytest.mark.parametrize(
    ("of_dag", "of_task", "warnings"),
    [
        ("", "", ()),
        ("sla_miss_callback=print", "", ("`sla_miss_callback` of DAG `flow` has no effect: no task has an `sla`",)),
        ("on_failure_callback=print", "", ()),
        ("", "run_as_user='ann'", ("`run_as_user` of task `a` and 2 more has no effect yet",)),
        ("fail_fast=True", "depends_on_past=True", ()),
        ("access_control={'a': ['b']}", "", ("`access_control` of DAG `flow` has no effect yet",)),
        (
            "",
            "executor='big'",
            ("`executor` of task `a` and 2 more has no effect: tasks run on the executor of their agent",),
        ),
        (
            "default_args={'start_date': datetime(2026, 1, 1), 'end_date': '2026-02-01'}",
            "resources=None",
            (),
        ),
        ("start_date=datetime(2026, 1, 1)", "start_date=datetime(2026, 1, 2)", ()),
        ("", "on_failure_callback=print", ()),
    ],
)
def test_an_argument_without_effect_is_named(project, of_dag, of_task, warnings):
    project.load(SOURCE.format(of_dag=of_dag, of_task=of_task))
    (workflow,) = project.file.workflows
    assert workflow.warnings == warnings


def test_the_guide_names_every_argument_without_effect():
    guide = (Path(__file__).parents[2] / "docs" / "guides" / "run-a-dag-folder.md").read_text()
    without_effect = guide.split("**have no effect**")[1].split("There is no web interface")[0]
    named = set(re.findall(r"`(\w+)`", without_effect)) - {"standalone", "executor_config"}
    assert named == {*OF_DAG, *OF_TASK, *SILENT}


def test_each_of_them_is_an_argument():
    of_dag = inspect.signature(DAG).parameters
    of_task = inspect.signature(BaseOperator.__init__).parameters
    assert set(OF_DAG) <= set(of_dag)
    assert set(OF_TASK) <= set(of_task)
    assert set(SILENT) <= {*of_dag, *of_task}


def test_executors_are_spoken_of_once_for_a_file(project):
    project.load(
        "from airflow import DAG\n"
        "from airflow.operators.empty import EmptyOperator\n"
        "for name in 'abc':\n"
        "    with DAG(name, schedule=None):\n"
        "        EmptyOperator(task_id='t', executor='big', run_as_user='ann')\n"
    )
    said = [len(workflow.warnings) for workflow in project.file.workflows]
    assert said == [2, 1, 1]
