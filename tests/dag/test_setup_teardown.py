"""Setups and teardowns: marks, scopes, and what they mean for edges and results."""

from __future__ import annotations

import pytest

from headrace.authoring.dag.exceptions import AirflowException
from headrace.errors import DefinitionError, LoadError
from headrace.testing.engine import Engine

HEAD = """
from airflow.sdk import DAG, TaskGroup, setup, task, task_group, teardown
from airflow.operators.empty import EmptyOperator
@setup
def make(): pass
@teardown
def drop(): pass
@task
def work(): pass
def empty(name): return EmptyOperator(task_id=name)
with DAG("d") as dag:
"""


@pytest.fixture
def edges(project):
    def load(body):
        lines = "\n".join("    " + line for line in body.strip("\n").splitlines())
        return {key: set(node.upstream) for key, node in project.nodes(HEAD + lines).items()}

    return load


def test_tasks_in_the_scope_of_a_teardown_run_between_it_and_its_setups(edges):
    found = edges("""
with drop().as_teardown(setups=make()):
    a = empty("a")
    a >> [empty("b"), empty("c")]
""")
    assert found == {"make": set(), "drop": {"make", "a", "b", "c"}, "a": {"make"}, "b": {"a"}, "c": {"a"}}


def test_the_scope_of_a_setup_finds_its_teardown(edges):
    found = edges("""
m = make()
m >> drop()
with m:
    empty("a")
""")
    assert found == {"make": set(), "drop": {"make", "a"}, "a": {"make"}}


def test_a_task_that_was_made_before_can_be_added_to_a_scope(edges):
    found = edges("""
w = work()
with empty("td").as_teardown(setups=empty("su")) as scope:
    scope.add_task(w)
""")
    assert found == {"work": {"su"}, "td": {"su", "work"}, "su": set()}


def test_scopes_inside_scopes_open_and_close_inside(edges):
    found = edges("""
with empty("t1").as_teardown(setups=empty("s1")):
    with empty("t2").as_teardown(setups=empty("s2")):
        empty("w")
""")
    assert found["s2"] == {"s1"}
    assert found["w"] == {"s2"}
    assert found["t2"] == {"s2", "w"}
    assert found["t1"] == {"s1", "s2", "w", "t2"}


def test_groups_in_a_scope_and_edges_from_a_group_leave_teardowns_out(edges):
    found = edges("""
with TaskGroup("g") as g:
    with empty("t").as_teardown(setups=empty("s")):
        with TaskGroup("h"): empty("w")
g >> empty("after")
""")
    assert found["g.h.w"] == {"g.s"}
    assert found["after"] == {"g.h.w"}


def test_an_ordinary_task_has_no_scope(edges):
    with pytest.raises(LoadError, match="task `a` is neither a setup nor a teardown"):
        edges("""
with empty("a"):
    empty("b")
""")


def test_what_follows_a_setup_must_need_its_success(edges):
    with pytest.raises(DefinitionError, match="follows the setup `make`, so its trigger rule must be `all_success`"):
        edges('make() >> work.override(trigger_rule="all_done")()')


def test_a_task_group_is_neither_a_setup_nor_a_teardown():
    from headrace import setup, task_group

    with pytest.raises(AirflowException, match="task group `g` cannot be a setup or a teardown"):

        @setup
        @task_group
        def g(): ...


STORY = """
    from airflow.sdk import DAG, setup, task, teardown
    with DAG("d"):
        @setup
        def make(): pass
        @task
        def broken(): raise ValueError("no")
        @task
        def fine(): pass
        @teardown({options})
        def drop(): {ending}
        @task
        def last(): pass
        work = [broken(), fine()]
        end = last()
        with drop().as_teardown(setups=make()) as scope:
            for one in (*work, end): scope.add_task(one)
        work >> end
"""


@pytest.fixture
def engine(tmp_path):
    engine = Engine(tmp_path)
    yield engine
    engine.close()


def test_a_teardown_runs_after_failures_and_after_everything_in_its_scope(engine):
    run = engine.start_dag(STORY.format(options="", ending="pass"))
    engine.settle()
    assert run.states() | {} == {
        "broken": "failed", "fine": "success", "drop": "success", "last": "upstream_failed", "make": "success",
    }  # fmt: skip
    assert run.state == "failed"


def ended_well(engine, options: str) -> str:
    run = engine.start_dag(
        STORY.replace('raise ValueError("no")', "pass").format(options=options, ending="raise ValueError('late')")
    )
    engine.settle()
    assert run.states()["drop"] == "failed"
    return run.state


def test_a_failed_teardown_fails_the_run_only_if_it_is_told_to(engine):
    assert ended_well(engine, "") == "success"
    engine.advance(seconds=1)
    assert ended_well(engine, "on_failure_fail_dagrun=True") == "failed"
