"""Callbacks around real processes: those that die cannot call back, so an errand does."""

from __future__ import annotations

import os
import signal

import pytest

DAG = """
    import os, signal
    from datetime import timedelta
    from airflow.sdk import DAG, task

    def tell(name):
        def callback(context):
            with open("told.txt", "a") as file:
                ti = context["ti"]
                print(name, ti.task_id, ti.try_number, context.get("reason"), file=file)
            print("told by", name)
        return callback

    with DAG("flow", schedule=None, on_failure_callback=tell("dag")):
        @task(
            retries=1, retry_delay=timedelta(0),
            on_retry_callback=tell("retry"), on_failure_callback=tell("failure"),
        )
        def killed():
            os.kill(os.getpid(), signal.SIGKILL)
        killed()
"""

CALLED = """
    import os, signal, time
    from airflow.sdk import DAG, task

    def tell(context):
        {what}

    with DAG("flow", schedule=None, on_success_callback=tell):
        task(lambda: None, task_id="quick")()
"""
HOPELESS = CALLED.format(what="os.kill(os.getpid(), signal.SIGKILL)")
ENDLESS = CALLED.format(what="open(os.environ['READY'], 'w').write('called'); time.sleep(600)")


def test_a_killed_process_is_told_by_errands_before_the_command_ends(headrace):
    done = headrace("run", headrace.write("flow.py", DAG))
    assert done.returncode == 1
    told = (headrace.folder / "flows" / "told.txt").read_text().splitlines()
    assert sorted(told) == ["dag killed 2 task_failure", "failure killed 2 None", "retry killed 1 None"]
    listed, _ = headrace.json("errands")
    assert [(one["kind"], one["state"], one["tries"]) for one in listed["errands"]] == [
        ("run_ended", "done", 1), ("try_died", "done", 1), ("try_died", "done", 1),
    ]  # fmt: skip
    logs = [log.read_text() for log in headrace.home.rglob("errand*.log")]
    assert sorted(text.split()[-1] for text in logs) == ["dag", "failure", "retry"]


def test_a_run_that_a_task_has_started_calls_back_before_the_command_ends(headrace):
    file = headrace.write(
        "flow.py",
        """
        from airflow.providers.standard.operators.trigger_dagrun import TriggerDagRunOperator
        from airflow.sdk import DAG, task

        def tell(context):
            with open("told.txt", "a") as file:
                print(context["dag"].dag_id, file=file)

        with DAG("other", schedule=None, on_success_callback=tell):
            task(lambda: None, task_id="quick")()

        with DAG("flow", schedule=None, on_success_callback=tell):
            TriggerDagRunOperator(task_id="go", trigger_dag_id="other")
        """,
    )
    done = headrace("run", file, "flow")
    assert done.returncode == 0, done.err
    told = (headrace.folder / "flows" / "told.txt").read_text().split()
    assert sorted(told) == ["flow", "other"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=lambda number: number.name)
def test_the_first_signal_ends_a_command_that_waits_for_a_callback_which_nobody_can_run(headrace, number):
    file = headrace.write("flow.py", HOPELESS)
    process = headrace.start("run", file, "--json")
    headrace.read_until(process, "success")
    while [(one["state"], one["tries"]) for one in headrace.json("errands")[0]["errands"]] != [("waiting", 1)]:
        assert process.poll() is None
    process.send_signal(number)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 130
    assert '"state": "success"' in out
    assert "stopped with 1 callback undone\nhint: `headrace errands 1`" in err


def test_the_first_signal_stops_a_callback_that_does_not_end(headrace):
    ready = headrace.folder / "ready"
    os.mkfifo(ready)
    process = headrace.start("run", headrace.write("flow.py", ENDLESS), READY=str(ready))
    assert ready.read_text() == "called"
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "stopped with 1 callback undone" in err
    listed, _ = headrace.json("errands")
    assert [(one["state"], one["tries"]) for one in listed["errands"]] == [("waiting", 0)]
