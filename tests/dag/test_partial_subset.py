"""A part of a DAG, as a DAG of its own."""

from __future__ import annotations

import pytest

from headrace import DAG, TaskGroup, task
from headrace.authoring.dag.exceptions import TaskNotFound

with DAG("whole", params={"n": 3}) as whole:

    @task
    def extract(params):
        return params["n"]

    @task
    def double(x):
        return 2 * x

    @task
    def report():
        raise AssertionError("not in this part")

    doubled = double(extract())

    with TaskGroup("loads"):

        @task
        def load(x):
            return x + 1

        loaded = load(doubled)
    loaded >> report()


def test_a_part_is_the_chosen_tasks_and_what_comes_before_them():
    part = whole.partial_subset("loads.load")
    assert part.task_ids == ["extract", "double", "loads.load"]
    assert part.get_task("loads.load").downstream_task_ids == set()
    assert list(part.task_group_dict) == ["loads"]
    assert whole.task_ids == ["extract", "double", "loads.load", "report"]
    assert whole.get_task("loads.load").downstream_task_ids == {"report"}
    run = part.test()
    assert (run.state, run.value("loads.load")) == ("success", 7)


@pytest.mark.parametrize(
    ("options", "ids"),
    [
        ({"include_upstream": False}, {"double"}),
        ({"include_upstream": False, "include_direct_upstream": True}, {"double", "extract"}),
        ({"include_upstream": False, "include_downstream": True}, {"double", "loads.load", "report"}),
    ],
)
def test_what_is_around_the_chosen_tasks_is_asked_for(options, ids):
    assert set(whole.partial_subset(["double"], **options).task_ids) == ids


def test_a_text_is_a_pattern_and_an_unknown_id_a_mistake():
    assert whole.partial_subset("^(ex|re)", include_upstream=False).task_ids == ["extract", "report"]
    with pytest.raises(TaskNotFound, match="has no task `exract`, did you mean `extract`"):
        whole.partial_subset(["exract"])
