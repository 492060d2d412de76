"""Ids of tasks and groups, and which default arguments reach which task."""

from __future__ import annotations

import pytest

from headrace import DAG, BaseOperator, BashOperator, EmptyOperator, PythonOperator, TaskGroup, dag, task, task_group
from headrace.authoring.dag.exceptions import DuplicateTaskIdFound


def test_group_id_prefixes_its_tasks():
    with DAG("d") as made, TaskGroup("outer"), TaskGroup("inner") as inner:
        EmptyOperator(task_id="a")
    assert made.task_ids == ["outer.inner.a"]
    assert inner.group_id == "outer.inner" and inner["a"].label == "a"


def test_group_without_prefix_gives_its_children_none_at_all():
    with DAG("d") as made, TaskGroup("outer"), TaskGroup("inner", prefix_group_id=False) as inner:
        EmptyOperator(task_id="a")
    assert inner.group_id == "outer.inner"
    assert made.task_ids == ["a"]


def test_task_function_called_again_gets_the_next_number():
    with DAG("d") as made:

        @task
        def f():
            pass

        f(), f(), f.override(task_id="f__5")(), f()
        with TaskGroup("g"):
            f(), f()
    assert made.task_ids == ["f", "f__1", "f__5", "f__6", "g.f", "g.f__1"]


def test_classic_operator_with_a_taken_id_is_refused():
    with DAG("d"):
        EmptyOperator(task_id="a")
        with pytest.raises(DuplicateTaskIdFound, match="`a`"):
            EmptyOperator(task_id="a")
        with pytest.raises(DuplicateTaskIdFound, match="`a`"):
            TaskGroup("a")


def test_task_group_function_makes_numbered_groups_and_passes_its_value_on():
    with DAG("d") as made:

        @task
        def f(x):
            return x

        @task_group
        def g(x):
            return f(x)

        @task_group(group_id="named")
        def nothing():
            EmptyOperator(task_id="e")

        assert g(1).operator.task_id == "g.f"
        g(2)
        assert isinstance(nothing(), TaskGroup)
    assert made.task_ids == ["g.f", "g__1.f", "named.e"]
    assert sorted(made.task_group_dict) == ["g", "g__1", "named"]


@pytest.mark.parametrize("wrong", ["with space", "ü/", "", "x" * 251])
def test_wrong_ids_are_refused(wrong):
    with pytest.raises(ValueError, match="task id"):
        EmptyOperator(task_id=wrong)
    with pytest.raises(ValueError, match="dag id"):
        DAG(wrong)


def test_unicode_letters_are_fine_but_groups_have_no_dots():
    with DAG("äöü.1"):
        EmptyOperator(task_id="größe")
        with pytest.raises(ValueError, match="group id"):
            TaskGroup("a.b")


def test_default_args_come_in_order():
    with DAG("d", default_args={"retries": 1, "owner": "dag", "queue": "dag", "pool": "dag", "unrelated": 1}) as made:
        with TaskGroup("g", default_args={"owner": "group", "queue": "group", "pool": "group"}):
            EmptyOperator(task_id="a", default_args={"queue": "own", "pool": "own"}, pool="explicit")
    a = made.get_task("g.a")
    assert (a.retries, a.owner, a.queue, a.pool) == (1, "group", "own", "explicit")


def test_default_args_can_fill_required_arguments_and_function_parameters():
    with DAG("d", default_args={"bash_command": "echo hi", "city": "Oslo"}) as made:
        BashOperator(task_id="b")

        @task
        def f(city):
            return city

        f()
        f("Rome")
    assert made.get_task("b").bash_command == "echo hi"
    assert made.get_task("f").op_kwargs == {"city": "Oslo"}
    assert made.get_task("f__1").op_kwargs == {} and made.get_task("f__1").op_args == ["Rome"]


def test_what_a_subclass_passes_on_is_stronger_than_a_default():
    class Stubborn(BaseOperator):
        def __init__(self, *, city="Oslo", **kwargs):
            super().__init__(retries=7, **kwargs)
            self.city = city

    with DAG("d", default_args={"retries": 1, "city": "Rome", "owner": "me"}):
        made = Stubborn(task_id="a")
    assert (made.retries, made.city, made.owner) == (7, "Rome", "me")


def test_unknown_and_positional_arguments_are_type_errors():
    with pytest.raises(TypeError, match="EmptyOperator `a` has no argument `retires`, did you mean `retries`"):
        EmptyOperator(task_id="a", retires=1)
    with pytest.raises(TypeError, match="keyword arguments only"):
        EmptyOperator("a")
    with pytest.raises(TypeError):
        DAG("d", shedule=None)
    with pytest.raises(TypeError, match="bash_command"):
        BashOperator(task_id="a")


@pytest.mark.parametrize(
    "wrong",
    [{"trigger_rule": "all_succes"}, {"pool_slots": 0}, {"execution_timeout": 60}, {"weight_rule": "x"}],
)
def test_wrong_values_are_refused_when_the_task_is_made(wrong):
    with pytest.raises(ValueError):
        EmptyOperator(task_id="a", **wrong)


def test_old_names_still_work():
    made = DAG("d", schedule_interval="@daily", concurrency=3, fail_stop=True, default_view="grid", orientation="LR")
    assert (made.schedule, made.max_active_tasks, made.fail_fast) == ("@daily", 3, True)
    task = EmptyOperator(
        task_id="a", task_concurrency=2, trigger_rule="dummy", retries="3", retry_delay=5, dag=DAG("e")
    )
    assert (task.max_active_tis_per_dag, task.trigger_rule, task.retries) == (2, "always", 3)
    assert task.retry_delay.total_seconds() == 5
    PythonOperator(task_id="p", python_callable=print, provide_context=True)


def test_params_are_merged_and_not_replaced():
    with DAG("d", params={"a": 1, "b": 1}, default_args={"params": {"b": 2}}) as made:
        one = EmptyOperator(task_id="t", params={"c": 3, "d": 3}, default_args={"params": {"d": 4}})
    assert made.params.dump() == {"a": 1, "b": 2}
    assert one.params.dump() == {"c": 3, "d": 4}


def test_dag_decorator_builds_a_new_dag_for_each_call():
    @dag(schedule="@daily", tags=["x"])
    def nightly(day="monday"):
        """What it does."""
        EmptyOperator(task_id="a")

    first, second = nightly(), nightly(day="friday")
    assert first is not second and first.dag_id == "nightly" and first.doc_md == "What it does."
    assert (first.params.dump(), second.params.dump()) == ({"day": "monday"}, {"day": "friday"})


def test_context_names_are_optional_but_other_arguments_are_not():
    with DAG("d"):

        @task
        def f(x, ds, ti=None):
            pass

        f(1)
        with pytest.raises(TypeError, match="`f`"):
            f()
        with pytest.raises(TypeError, match="`f`"):
            f(1, nope=2)

        with pytest.raises(ValueError, match="`ds`"):

            @task
            def g(ds="2026-01-01"):
                pass


def test_a_result_cannot_be_iterated_and_prints_as_a_template():
    with DAG("d"):

        @task
        def f():
            return [1]

        result = f()
    with pytest.raises(TypeError, match="not run yet"):
        list(result)
    assert "xcom_pull(task_ids='f', dag_id='d', key='return_value')" in str(result)
