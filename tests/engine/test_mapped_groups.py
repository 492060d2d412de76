"""Mapped task groups: whole runs on the real store, on both databases."""

from __future__ import annotations

import pytest

from headrace.testing.engine import Engine

PIPELINE = """
    from airflow.exceptions import AirflowSkipException
    from airflow.sdk import DAG, task, task_group

    with DAG("d"):
        @task
        def numbers(): return [10, 20, 30]

        @task
        def double(n): return n * 2

        @task
        def add(a, b):
            if a == 40: raise AirflowSkipException("not this one")
            return a + b

        @task_group
        def one(n, plus):
            return add(double(n), plus)

        @task
        def total(all_of_them): return sum(all_of_them)

        results = one.partial(plus=1).expand(n=numbers())
        total.override(trigger_rule="all_done")(results)
"""


@pytest.fixture(params=["sqlite", "postgres"])
def engine(request, tmp_path):
    url = request.getfixturevalue("prepared_postgres_url") if request.param == "postgres" else None
    engine = Engine(tmp_path, url)
    yield engine
    engine.close()


def test_each_element_goes_through_the_group_and_results_come_back_in_order(engine):
    run = engine.start_dag(PIPELINE)
    engine.settle()
    assert run.state == "success"
    assert run.value("one.double") == [20, 40, 60]
    assert (run.value("one.add"), run.value("total")) == ([21, 61], 82)
    assert run.states()["one.add[1]"] == "skipped"


@pytest.fixture
def local(tmp_path):
    engine = Engine(tmp_path, slots=1)
    yield engine
    engine.close()


def run_dag(engine: Engine, body: str):
    lines = "\n".join("        " + line for line in body.strip("\n").splitlines())
    run = engine.start_dag(f"""
    from airflow.sdk import DAG, TaskGroup, setup, task, task_group, teardown
    from airflow.operators.bash import BashOperator
    with DAG("d"):
{lines}
    """)
    engine.settle()
    return run


def test_sets_of_arguments_defaults_and_products(local):
    run = run_dag(
        local,
        """
@task
def say(*words): return "-".join(map(str, words))
@task
def sets(): return [{"a": 1}, {"a": 2, "b": 3}]
@task_group
def g(a, b="none"): say(a, b)
@task_group
def h(a, b): say(a, b)
g.expand_kwargs(sets())
h.expand(a=[1, 2], b={"x": 5})
""",
    )
    assert run.value("g.say") == ["1-none", "2-3"]
    assert run.value("h.say") == ["1-('x', 5)", "2-('x', 5)"]


def test_templates_in_a_mapped_group_see_the_groups_arguments(local):
    run = run_dag(
        local,
        """
@task_group
def g(word):
    BashOperator(task_id="echo", bash_command="echo $WORD", env={"WORD": word}, append_env=True)
g.expand(word=["a", "b"])
""",
    )
    assert run.value("g.echo") == ["a", "b"]


def test_groups_inside_mapped_groups_and_tasks_around_them(local):
    run = run_dag(
        local,
        """
@task
def start(): return 5
@task
def add(x, y): return x + y
@task_group
def outer(x):
    with TaskGroup("inner"):
        first = add(x, base)
    return add.override(task_id="second")(first, 100)
base = start()
outer.expand(x=[1, 2])
""",
    )
    assert run.value("outer.inner.add") == [6, 7]
    assert run.value("outer.second") == [106, 107]


def test_an_empty_mapping_skips_the_whole_group(local):
    run = run_dag(
        local,
        """
@task
def nothing(): return []
@task
def use(x): return x
@task_group
def g(x): use.override(task_id="b")(use.override(task_id="a")(x))
g.expand(x=nothing())
""",
    )
    assert run.states() == {"nothing": "success", "g.a": "skipped", "g.b": "skipped"}
    assert run.state == "success"


def test_an_index_does_not_wait_for_its_siblings(local):
    run = run_dag(
        local,
        """
@task
def fail_first(x):
    if x == 0: raise ValueError("no")
    return x
@task
def after(x): return x
@task_group
def g(x): after(fail_first(x))
g.expand(x=[0, 1])
""",
    )
    states = run.states()
    assert (states["g.after[0]"], states["g.after[1]"], run.state) == ("upstream_failed", "success", "failed")
