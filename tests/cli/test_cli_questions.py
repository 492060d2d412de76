"""A run that waits for a person, and the commands by which the person is found and answers."""

from __future__ import annotations

import json
import time

DAG = """
    from airflow.providers.standard.operators.hitl import ApprovalOperator
    from airflow.sdk import Param

    @task
    def publish(ti=None):
        print("published by", ti.xcom_pull("ready")["params_input"]["who"])

    ApprovalOperator(task_id="ready", subject="Publish?", params={"who": Param(type="string")}) >> publish()
"""


def open_questions(headrace):
    until = time.monotonic() + 30
    while time.monotonic() < until:
        done = headrace("questions", "--json")  # which fails for as long as there is no database
        asked = json.loads(done.out)["questions"] if done.returncode == 0 else []
        if asked:
            return asked
    raise AssertionError("nothing was asked")


def test_a_run_goes_on_when_somebody_answers_in_another_terminal(headrace):
    waiting = headrace.start("run", headrace.dag(DAG))
    (question,) = open_questions(headrace)
    assert (question["task"], question["subject"], question["options"]) == ("ready", "Publish?", ["Approve", "Reject"])
    assert "Publish?" in headrace("questions").out
    assert headrace.json("tasks", "latest")[0]["tasks"]["ready"]["question"]["subject"] == "Publish?"
    assert "Publish?" in headrace("tasks", "latest").out
    refused = headrace("answer", "latest", "ready", "Aprove", "-p", "who=me")
    assert refused.returncode == 2
    assert "the question has no option `Aprove`" in refused.err
    assert "did you mean `Approve`?" in refused.err
    done = headrace("answer", "latest", "ready", "Approve", "-p", "who=me", "--by", "ann")
    assert done.out == "task `ready` of run 1 of `flow` goes on\n"
    _, err = waiting.communicate(timeout=60)
    assert waiting.returncode == 0, err
    assert "published by me" in headrace("logs", "latest", "publish").out
    (closed,) = headrace.json("questions", "--all")[0]["questions"]
    assert (closed["outcome"], closed["answer"]["by"]) == ("answered", {"id": "ann", "name": "ann"})
    again = headrace("answer", "latest", "ready", "Approve", "-p", "who=me")
    assert "task `ready` of run 1 asks nothing: it is `success`" in again.err
