"""Traps of Airflow's behaviour that no other test stands in the way of; `docs/reference/airflow-compatibility.md` lists
all of them."""

from __future__ import annotations

import pytest

from headrace.errors import LoadError

HEAD = """
from datetime import timedelta
from airflow.exceptions import AirflowSkipException
from airflow.providers.standard.operators.bash import BashOperator
from airflow.providers.standard.operators.python import PythonOperator
from airflow.sdk import DAG, task
"""


def settled(engine, body: str, **options):
    run = engine.start_dag(HEAD + body, **options)
    engine.settle()
    return run


def test_unknown_default_args_are_ignored_and_known_ones_fill_arguments_of_functions(engine):
    run = settled(
        engine,
        """
with DAG("defaults", default_args={"nobody_knows_this": 1, "number": 7, "retries": 0}):
    @task
    def work(number):
        return number
    work()
""",
    )
    assert run.value("work") == 7


def test_products_vary_their_last_argument_fastest_and_dicts_give_pairs(engine):
    run = settled(
        engine,
        """
with DAG("products"):
    @task
    def pair(a, b):
        return [a, b]
    @task
    def item(x):
        return list(x)
    pair.expand(a=[1, 2], b=["x", "y", "z"])
    item.expand(x={"one": 1, "two": 2})
""",
    )
    assert run.value("pair") == [[1, "x"], [1, "y"], [1, "z"], [2, "x"], [2, "y"], [2, "z"]]
    assert run.value("item") == [["one", 1], ["two", 2]]


def test_a_short_circuit_spares_what_cleans_up(engine):
    run = settled(
        engine,
        """
with DAG("circuit"):
    @task
    def begin(): pass
    @task.short_circuit
    def stop(): return False
    @task(trigger_rule="all_done")
    def after(): pass
    @task
    def clean(): pass
    first, last = begin(), clean()
    first >> stop() >> after() >> last
    last.operator.as_teardown(setups=first.operator)
""",
    )
    assert run.states() == {"begin": "success", "stop": "success", "after": "skipped", "clean": "success"}


@pytest.mark.parametrize(
    ("rule", "last", "run_state"), [("all_done", "success", "success"), ("all_success", "upstream_failed", "failed")]
)
def test_only_the_last_tasks_decide_how_a_run_ends(engine, rule, last, run_state):
    run = settled(
        engine,
        f"""
with DAG("leaves"):
    @task
    def middle(): raise ValueError
    @task(trigger_rule="{rule}")
    def last(): pass
    middle() >> last()
""",
    )
    assert (run.states(), run.state) == ({"middle": "failed", "last": last}, run_state)


def test_a_run_whose_last_tasks_were_all_skipped_has_succeeded(engine):
    run = settled(
        engine,
        """
with DAG("skipped"):
    @task
    def skip(): raise AirflowSkipException
    @task
    def after(): pass
    skip() >> after()
""",
    )
    assert (set(run.states().values()), run.state) == ({"skipped"}, "success")


def test_results_are_gone_when_a_sensor_is_called_again(engine):
    run = engine.start_dag(
        HEAD
        + """
with DAG("pokes"):
    @task.sensor(poke_interval=30, mode="reschedule")
    def look(ti):
        before = ti.xcom_pull(task_ids="look", key="seen")
        ti.xcom_push("seen", True)
        print("before:", before)
        return False
    look()
"""
    )
    engine.settle()
    engine.advance(seconds=30)
    engine.settle()
    assert run.log("look").count("before: None") == 2


def test_the_callback_for_skipped_tasks_is_for_those_that_skip_themselves(engine):
    run = settled(
        engine,
        """
def tell(context):
    print("told", context["ti"].task_id)

with DAG("skips", default_args={"on_skipped_callback": tell}):
    @task
    def skip(): raise AirflowSkipException
    @task
    def after(): pass
    skip() >> after()
""",
    )
    assert run.states() == {"skip": "skipped", "after": "skipped"}
    assert "told skip" in run.log("skip")
    assert run.tries("after") == []


def test_a_file_name_in_a_template_field_is_a_file_unless_a_space_follows_it(engine):
    engine.write("say.sh", "echo {{ ds }}")
    run = settled(
        engine,
        """
with DAG("files"):
    BashOperator(task_id="file", bash_command="say.sh")
    BashOperator(task_id="command", bash_command="echo say.sh ")
    BashOperator(task_id="missing", bash_command="nowhere.sh")
""",
    )
    assert (run.value("file"), run.value("command")) == ("2026-02-03", "say.sh")
    assert run.states()["missing"] == "failed"
    assert "nowhere.sh" in (run.error("missing") or "")


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ("execution_timeout=60", "execution_timeout"),
        ("retries='many'", "retries"),
        ("retry_delay='soon'", "retry_delay"),
    ],
)
def test_wrong_kinds_of_numbers_are_refused_while_the_file_is_loaded(engine, argument, message):
    with pytest.raises(LoadError, match=message):
        engine.start_dag(
            HEAD + f"with DAG('numbers'):\n    PythonOperator(task_id='t', python_callable=print, {argument})"
        )


def test_retries_may_be_text_and_delays_seconds(engine):
    run = settled(
        engine,
        """
with DAG("numbers"):
    @task(retries="1", retry_delay=0)
    def work(): raise ValueError
    work()
""",
    )
    assert run.tries("work") == ["failed", "failed"]


@pytest.mark.parametrize(("code", "state"), [("0", "success"), ("", "success"), ("3", "failed")])
def test_leaving_with_a_good_exit_code_is_a_success(engine, code, state):
    run = settled(
        engine,
        f"""
import sys
with DAG("leaving"):
    @task
    def work(): sys.exit({code})
    work()
""",
    )
    assert run.states() == {"work": state}
