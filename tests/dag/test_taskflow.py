"""Task functions: what annotations say, conditions, copies, and decorators that do not exist."""

from __future__ import annotations

import pytest

from headrace.authoring.dag.parsing_context import get_parsing_context
from headrace.errors import LoadError

HEAD = """
from __future__ import annotations
from typing import TYPE_CHECKING, Any, Mapping, TypedDict
from airflow.sdk import DAG, task, get_current_context
if TYPE_CHECKING:
    from nowhere import Nothing
class Answer(TypedDict):
    a: int
with DAG("d"):
"""


@pytest.fixture
def flow(project):
    def load(body):
        lines = "\n".join("    " + line for line in body.strip("\n").splitlines())
        project.load(HEAD + lines)
        return project

    return load


@pytest.mark.parametrize(
    ("annotation", "is_split"),
    [("dict", True), ("dict[str, int]", True), ("Mapping[str, Any]", True), ("Answer", True), ("int", False)],
)
def test_a_return_annotation_decides_about_multiple_outputs(flow, annotation, is_split):
    project = flow(f"@task\ndef f(x: Nothing = None) -> {annotation}: return {{'a': 1}}\nf()")
    assert ("a" in project.run("f").values) is is_split


def test_an_annotation_that_nobody_can_evaluate_is_no_mistake(flow):
    assert "a" not in flow("@task\ndef f() -> Nothing: return {'a': 1}\nf()").run("f").values


def test_multiple_outputs_can_be_refused(flow):
    project = flow("@task(multiple_outputs=False)\ndef f() -> dict: return {'a': 1}\nf()")
    assert set(project.run("f").values) == {"return_value"}


def test_the_same_function_in_a_loop_gets_numbers_and_copies_their_own_ids(flow):
    project = flow("""
@task
def f(x): return x
for x in range(3): f(x)
f.override(task_id="other", retries=2)(5)
""")
    nodes = {node.key: node for node in project.file.workflows[0].nodes}
    assert set(nodes) == {"", "f", "f__1", "f__2", "other"}
    assert (nodes["other"].retry.limit, nodes["f"].retry.limit) == (2, 0)
    assert project.value(project.run("f__2")) == 2


def test_conditions_skip_with_their_reason(flow):
    project = flow("""
@task.run_if(lambda context: context["params"]["go"], "not today")
@task
def a(): return 1
@task.skip_if(lambda context: (not context["params"]["go"], "because"))
@task
def b(): return 2
a() >> b()
""")
    assert [project.run(key, conf={"go": True}).outcome for key in "ab"] == ["success", "success"]
    assert [project.run(key, conf={"go": False}).outcome for key in "ab"] == ["skipped", "skipped"]


def test_decorators_of_providers_are_explained(flow):
    with pytest.raises(LoadError, match=r"`@task\.kubernetes` comes with Airflow's provider `cncf-kubernetes`"):
        flow("@task.kubernetes\ndef f(): pass")
    with pytest.raises(LoadError, match=r"there is no `@task\.bahs`, did you mean `bash`"):
        flow("@task.bahs\ndef f(): pass")


def test_iterating_a_result_and_taking_a_part_of_it_by_number_are_explained(flow):
    with pytest.raises(LoadError, match="has not run yet, so it cannot be iterated here"):
        flow("@task\ndef f(): pass\nfor x in f(): pass")
    with pytest.raises(LoadError, match="expected the name of a result of `f` in brackets, got: 0"):
        flow("@task\ndef f(): pass\nf()[0]")


def test_files_that_build_many_dags_are_asked_for_all_of_them():
    assert tuple(get_parsing_context()) == (None, None)


def test_instances_of_a_mapped_task_share_nothing_but_what_is_the_same(project):
    project.load(
        """
        from headrace import DAG, PythonOperator, task

        class Counting(PythonOperator):
            made = 0

            def __init__(self, **kwargs):
                super().__init__(**kwargs)
                Counting.made += 1

        with DAG("flow"):
            @task
            def plain(x, ti, seen=[]):
                seen.append(x)
                return [x, ti.task.op_kwargs, len(seen)]

            plain.expand(x=[1, 2])

            counted = Counting.partial(task_id="counted", python_callable=lambda x: [x, Counting.made])
            counted.expand(op_kwargs=[{"x": 3}, {"x": 4}])
        """
    )
    first, second = (project.value(project.run("plain", map_index=index)) for index in (0, 1))
    assert (first, second) == ([1, {"x": 1}, 1], [2, {"x": 2}, 2])
    before = project.value(project.run("counted", map_index=0))[1]
    assert project.value(project.run("counted", map_index=1)) == [4, before + 1]
