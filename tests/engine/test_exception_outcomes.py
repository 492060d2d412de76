"""Which state a task is in after each kind of exception, and whether it is tried again."""

from __future__ import annotations

import pytest

FLOW = """
    import sys, time
    from datetime import datetime, timedelta, timezone
    from airflow.exceptions import *
    from airflow.sdk import DAG, task

    with DAG("d"):
        @task(retries=1, execution_timeout=timedelta(seconds=0.2))
        def f():
            {statement}

        @task
        def after():
            pass

        @task(trigger_rule="all_done")
        def last():
            pass

        f() >> after() >> last()
"""


@pytest.mark.parametrize(
    ("statement", "state"),
    [
        ("pass", "success"),
        ("raise AirflowSkipException('no')", "skipped"),
        ("raise AirflowFailException('no')", "failed"),
        ("raise AirflowSensorTimeout('no')", "failed"),
        ("raise AirflowTaskTerminated('no')", "failed"),
        ("raise AirflowRescheduleException(datetime.now(timezone.utc) + timedelta(hours=1))", "up_for_reschedule"),
        ("raise AirflowTaskTimeout('no')", "up_for_retry"),
        ("time.sleep(5)", "up_for_retry"),
        ("raise AirflowException('no')", "up_for_retry"),
        ("raise ValueError('no')", "up_for_retry"),
        ("raise KeyboardInterrupt()", "up_for_retry"),
        ("raise BaseException('no')", "up_for_retry"),
        ("sys.exit()", "success"),
        ("sys.exit(0)", "success"),
        ("sys.exit(1)", "up_for_retry"),
        ("sys.exit('no')", "up_for_retry"),
        ("raise DownstreamTasksSkipped(tasks=['after'])", "success"),
    ],
)
def test_state_after(engine, statement, state):
    run = engine.start_dag(FLOW.replace("{statement}", statement))
    engine.settle()
    assert run.states()["f"] == state
    assert run.task("f").try_number == 1


def test_tasks_after_it_are_skipped_if_it_says_so(engine):
    run = engine.start_dag(FLOW.replace("{statement}", "raise DownstreamTasksSkipped(tasks=['after', ('last', 0)])"))
    engine.settle()
    assert run.states() == {"f": "success", "after": "skipped", "last": "skipped"}


def test_a_broad_except_does_not_swallow_a_timeout(engine):
    statement = "\n            ".join(["try:", "    time.sleep(5)", "except Exception:", "    return 'swallowed'"])
    run = engine.start_dag(FLOW.replace("{statement}", statement))
    engine.settle()
    assert run.states()["f"] == "up_for_retry"
