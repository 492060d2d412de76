"""Tries that do nothing: what they run, that they end, and that nobody hears of them."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from headrace.authoring.dag import DAG
from headrace.authoring.dag.loading import DagFile
from headrace.definition import Node
from headrace.handoff import RunContext, Source, TaskRequest, TaskResult
from headrace.operators.python import PythonOperator
from headrace.runner import python_task
from headrace.runner.child import rehearsal_with, rehearse


def request(key: str, **fields) -> TaskRequest:
    source, run = Source(root="/", file="", language=""), RunContext(project="", workflow="w")
    return TaskRequest(task_id=1, fence=1, key=key, node=Node(key=key, **fields), source=source, run=run)


@pytest.fixture
def ran():
    return []


@pytest.fixture
def run(ran):
    def run(file, request, channel):
        ran.append(request.key)
        return TaskResult(task_id=request.task_id, fence=request.fence, outcome="success")

    return run


def test_only_the_given_messages_are_rehearsed(run, ran):
    rehearsal = rehearsal_with(run, None, request("every"), request("many"))
    rehearse(rehearsal, rehearsal.messages[:1])
    assert ran == ["every"]
    rehearse(rehearsal, rehearsal.messages * 2)
    assert ran == ["every", "every", "many", "every", "many"]


def test_a_try_whose_process_may_serve_again_is_rehearsed_once(run, ran):
    rehearsal = rehearsal_with(run, None, request("again", isolation="reuse"))
    rehearse(rehearsal, rehearsal.messages)
    assert ran == ["again"]


def dag_file(*, is_mapped: bool) -> DagFile:
    with DAG("d", schedule=None, auto_register=False) as dag:
        if is_mapped:
            PythonOperator.partial(task_id="t", python_callable=print).expand(op_args=[[1], [2]])
        else:
            PythonOperator(task_id="t", python_callable=print)
    return DagFile(Path("/"), "", (), {"d": dag})


@pytest.mark.parametrize("is_mapped", [False, True])
def test_tasks_of_the_kinds_that_a_file_has_are_rehearsed_unheard(is_mapped, monkeypatch):
    heard = []
    handler = logging.Handler()
    handler.emit = heard.append
    monkeypatch.setattr(logging.getLogger(), "handlers", [handler])
    monkeypatch.setattr(logging.getLogger(), "level", logging.DEBUG)
    for name in ("AIRFLOW_CTX_DAG_ID", "AIRFLOW_CTX_TASK_ID", "AIRFLOW_CTX_TRY_NUMBER", "AIRFLOW_CTX_DAG_RUN_ID"):
        monkeypatch.setenv(name, "")  # so that they are as before afterwards
    for name in ("AIRFLOW_CTX_DAG_OWNER", "AIRFLOW_CTX_DAG_EMAIL"):
        monkeypatch.setenv(name, "")
    run, made, *requests = python_task.rehearsal(dag_file(is_mapped=is_mapped))
    results = {one.key: run(made, one, None) for one in requests}
    assert {result.outcome for result in results.values()} == {"success"}
    assert set(results) == {"nothing", "little", *(["mapped"] if is_mapped else [])}
    assert bytes(results["little"].values["return_value"]) == b"[1]"
    assert heard == []
