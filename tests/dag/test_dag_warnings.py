"""What the engine does not act on is said, never swallowed."""

from __future__ import annotations

import pytest

SOURCE = """
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
        ("", "on_failure_callback=print", ()),
    ],
)
def test_an_argument_without_effect_is_named(project, of_dag, of_task, warnings):
    project.load(SOURCE.format(of_dag=of_dag, of_task=of_task))
    (workflow,) = project.file.workflows
    assert workflow.warnings == warnings
