"""`>>`, `<<`, lists, chains and labels make the edges that a reader expects."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace import DAG, EmptyOperator, Label, TaskGroup, chain, chain_linear, cross_downstream, task


def tasks(count=4):
    dag = DAG("edges")
    with dag:
        made = [EmptyOperator(task_id="abcdefghij"[index]) for index in range(count)]
    return dag, made


def edges(dag):
    return {f"{task.task_id}{after}" for task in dag.tasks for after in task.downstream_task_ids}


def test_shift_right_links_and_gives_the_right_side():
    dag, (a, b, c, _) = tasks()
    assert (a >> b >> c) is c
    assert edges(dag) == {"ab", "bc"}


def test_shift_left_links_backwards():
    dag, (a, b, c, _) = tasks()
    assert (a << b << c) is c
    assert edges(dag) == {"ba", "cb"}


def test_lists_fan_out_and_in():
    dag, (a, b, c, d) = tasks()
    fan = a >> [b, c]
    assert fan == [b, c]
    assert (fan >> d) is d
    assert edges(dag) == {"ab", "ac", "bd", "cd"}


def test_list_before_shift_left_means_downstream():
    dag, (a, b, c, _) = tasks()
    [b, c] << a
    assert edges(dag) == {"ab", "ac"}


def test_two_plain_lists_cannot_be_linked():
    _, (a, b, c, d) = tasks()
    with pytest.raises(TypeError):
        [a, b] >> [c, d]  # noqa: B018


def test_something_else_than_a_task_is_named():
    _, (a, *_) = tasks()
    with pytest.raises(TypeError, match="got: int"):
        a >> 3

    @task
    def load():
        pass

    with pytest.raises(TypeError, match=r"`load` \(was it called\?\)"):
        a >> load


def test_chain_pairs_lists_of_equal_length():
    dag, (a, b, c, d, e, f) = tasks(6)
    chain(a, [b, c], [d, e], f)
    assert edges(dag) == {"ab", "ac", "bd", "ce", "df", "ef"}


def test_chain_refuses_lists_of_different_length():
    _, (a, b, c, d) = tasks()
    with pytest.raises(ValueError, match="1 and 3"):
        chain([a], [b, c, d])


def test_chain_linear_links_everything_to_everything_in_the_next():
    dag, (a, b, c, d, e, f) = tasks(6)
    chain_linear(a, [b, c], [d, e, f])
    assert edges(dag) == {"ab", "ac", "bd", "be", "bf", "cd", "ce", "cf"}


def test_chain_linear_refuses_labels_and_nothing():
    _, (a, b, *_) = tasks()
    with pytest.raises(ValueError, match="labels"):
        chain_linear(a, Label("x"), b)
    with pytest.raises(ValueError, match="no edge"):
        chain_linear([a, b])


def test_cross_downstream_is_a_full_product():
    dag, (a, b, c, d) = tasks()
    cross_downstream([a, b], [c, d])
    assert edges(dag) == {"ac", "ad", "bc", "bd"}


def test_labels_name_the_edges_they_stand_on():
    dag, (a, b, c, d) = tasks()
    a >> Label("yes") >> [b, c]
    d << Label("back") << c
    chain(b, Label("chained"), d)
    assert edges(dag) == {"ab", "ac", "cd", "bd"}
    assert dag.edge_labels == {("a", "b"): "yes", ("a", "c"): "yes", ("c", "d"): "back", ("b", "d"): "chained"}


def test_group_is_linked_by_its_roots_and_leaves():
    dag, (a, *_) = tasks(1)
    with dag:
        with TaskGroup("g", prefix_group_id=False) as group:
            m, n, o = (EmptyOperator(task_id=name) for name in "mno")
            [m, n] >> o
        z = EmptyOperator(task_id="z")
    a >> group >> z
    assert edges(dag) == {"am", "an", "mo", "no", "oz"}


def test_empty_group_is_transparent():
    dag, (a, b, *_) = tasks(2)
    with dag:
        group = TaskGroup("g")
    a >> group >> b
    assert edges(dag) == {"ab"}


def test_group_leaves_skip_teardowns():
    dag, _ = tasks(0)
    with dag:
        with TaskGroup("g", prefix_group_id=False) as group:
            s, w, t = (EmptyOperator(task_id=name) for name in "swt")
            s >> w >> t.as_teardown(setups=s)
        z = EmptyOperator(task_id="z")
    group >> z
    assert edges(dag) == {"sw", "wt", "st", "wz"}


def test_tasks_of_two_dags_cannot_be_linked():
    _, (a, *_) = tasks()
    _, (b, *_) = tasks()
    with pytest.raises(RuntimeError, match="cannot be linked"):
        a >> b


def test_task_without_dag_joins_the_dag_of_its_neighbour():
    dag, (a, *_) = tasks(1)
    loner = EmptyOperator(task_id="x")
    a >> loner
    assert loner.dag is dag and dag.get_task("x") is loner
    with pytest.raises(ValueError, match="need a DAG"):
        EmptyOperator(task_id="p") >> EmptyOperator(task_id="q")


def test_results_as_arguments_make_edges_wherever_they_hide():
    with DAG("d") as dag:

        @task
        def give():
            return 1

        @task
        def take(plain, nested):
            return plain, nested

        first, second, third = give(), give(), give()
        take(first, {"x": [second, (third["key"],)]})
    assert dag.get_task("take").upstream_task_ids == {"give", "give__1", "give__2"}


def test_result_assigned_later_makes_an_edge_too():
    with DAG("d") as dag:
        from headrace import BashOperator

        @task
        def give():
            return "x"

        late = BashOperator(task_id="late", bash_command="true")
        late.bash_command = give()
    assert dag.get_task("late").upstream_task_ids == {"give"}


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=20))
def test_edges_are_sets_and_mirror_each_other(pairs):
    dag, made = tasks(6)
    for left, right in pairs:
        made[left] >> made[right]
    wanted = {f"{made[left].task_id}{made[right].task_id}" for left, right in pairs}
    assert edges(dag) == wanted
    assert {f"{before}{task.task_id}" for task in dag.tasks for before in task.upstream_task_ids} == wanted
