"""Tasks with dates of their own: what runs about other times do without them, as Airflow 3.3 was seen to."""

from __future__ import annotations

import pytest

from headrace.actions.why import why

SOURCE = """
from datetime import datetime, timezone
from airflow.sdk import DAG, task

with DAG("flow", schedule="@daily", start_date=datetime(2026, 1, 1, tzinfo=timezone.utc)):
    @task
    def before(): ...
    @task({arguments})
    def t(): ...
    @task
    def after(): ...
    @task(trigger_rule="all_done")
    def last(): ...
    {edges}
"""
BEFORE = "start_date=datetime(2026, 2, 1, tzinfo=timezone.utc)"
AFTER = "end_date=datetime(2026, 1, 5)"
CHAIN = "before() >> t() >> after() >> last()"
LEFT_OUT = {"before": "success", "t": "none", "after": "none", "last": "none"}


def start(engine, arguments, edges=CHAIN, **options):
    run = engine.start_dag(SOURCE.format(arguments=arguments, edges=edges), session="2026-01-10", **options)
    engine.settle()
    return run


@pytest.mark.parametrize(
    ("arguments", "state", "states"),
    [
        (BEFORE, "failed", LEFT_OUT),
        (AFTER, "failed", LEFT_OUT),
        ("end_date=datetime(2026, 1, 10)", "success", dict.fromkeys(LEFT_OUT, "success")),
        ("start_date=datetime(2026, 1, 10)", "success", dict.fromkeys(LEFT_OUT, "success")),
        ("start_date=datetime(2025, 1, 10)", "success", dict.fromkeys(LEFT_OUT, "success")),
    ],
)
def test_a_task_is_only_in_runs_that_are_about_its_time(engine, arguments, state, states):
    run = start(engine, arguments)
    assert (run.state, run.states()) == (state, states)


def test_one_that_nothing_waits_for_is_left_out(engine):
    run = start(engine, AFTER, "before() >> [t(), after() >> last()]")
    assert (run.state, run.states()) == ("success", dict.fromkeys(["before", "after", "last"], "success"))


def test_one_that_only_others_wait_for_which_are_left_out_is_left_out_too(engine):
    run = start(engine, AFTER, "before() >> t() >> t.override(task_id='u')()")
    assert (run.state, run.states()) == ("success", {"before": "success"})


def test_why_says_so(engine):
    start(engine, AFTER)
    (reason,) = why(engine.store, engine.clock, "latest", "t").reasons
    assert (reason.kind, reason.sentence) == (
        "dates",
        "`t` is not for the time of this run, by its start_date or end_date",
    )
