"""What is wrong with a workflow, in which words and at which place."""

from __future__ import annotations

import pytest

from headrace.definition import (
    TRIGGER_RULES,
    Length,
    Node,
    Place,
    Workflow,
    check_nodes,
    check_workflow,
    find_cycle,
    leaves,
)
from headrace.errors import CycleError, DanglingEdgeError, DefinitionError, DuplicateTaskError


def node(key: str, *upstream: str, parent: str | None = "", line: int | None = None, **fields) -> Node:
    place = Place(file="sales.py", line=line) if line is not None else Place()
    return Node(key=key, parent=parent, upstream=upstream, place=place, **fields)


def workflow(*nodes: Node) -> Workflow:
    return Workflow(name="daily", language="python", nodes=(Node(key="", kind="group"), *nodes))


def test_a_workflow_that_can_run_is_returned():
    good = workflow(node("a"), node("g", "a", kind="group"), node("b", parent="g"), node("c", "g", "b"))
    assert check_workflow(good) is good


def test_tasks_that_wait_for_each_other_are_named_in_the_order_of_execution():
    with pytest.raises(CycleError) as caught:
        check_workflow(workflow(node("a", "c", line=3), node("b", "a", line=4), node("c", "b", line=5)))
    assert caught.value.message == "workflow `daily` waits for itself: `b` → `c` → `a` → `b`"
    assert caught.value.place == "sales.py:4"


def test_a_task_that_waits_for_itself_is_a_cycle():
    assert find_cycle([node("a", "a")]) == ["a", "a"]


def test_a_task_that_waits_for_its_own_group_is_a_cycle():
    assert find_cycle([node("g", kind="group"), node("a", "g", parent="g")]) == ["a", "g", "a"]


def test_a_group_that_waits_for_a_task_inside_it_is_a_cycle():
    assert find_cycle([node("g", "a", kind="group"), node("a", parent="g")]) == ["a", "g", "a"]


def test_a_task_inside_a_group_that_waits_for_one_behind_the_group_is_a_cycle():
    nodes = [node("g", kind="group"), node("x", "g"), node("a", "x", parent="g")]
    assert find_cycle(nodes) == ["x", "a", "g", "x"]


def test_groups_that_wait_for_parts_of_each_other_in_one_direction_are_no_cycle():
    nodes = [
        node("g", kind="group"), node("a", parent="g"), node("h", kind="group"), node("b", "a", parent="h"),
        node("c", "b", parent="g"),
    ]  # fmt: skip
    assert find_cycle(nodes) is None


def test_a_long_chain_needs_no_deep_stack():
    chain = [node(f"t{i}", f"t{i + 1}") for i in range(20_000)]
    assert find_cycle(chain) is None
    assert find_cycle([*chain, node("t20000", "t0")]) is not None


def test_two_tasks_with_one_key_are_shown_with_both_places():
    with pytest.raises(DuplicateTaskError) as caught:
        check_workflow(workflow(node("a", line=3), node("a", line=9)))
    assert caught.value.message == "workflow `daily` has two tasks with the key `a`, the first one at `sales.py:3`"
    assert caught.value.place == "sales.py:9"


def test_a_task_that_waits_for_one_that_does_not_exist_is_offered_the_nearest():
    with pytest.raises(DanglingEdgeError) as caught:
        check_workflow(workflow(node("load_raw"), node("transform", "load_row", line=41)))
    assert str(caught.value) == (
        "task `transform` waits for `load_row`, but workflow `daily` has no such task (`sales.py:41`)\n"
        "hint: did you mean `load_raw`?"
    )


def test_no_guess_is_made_where_nothing_is_near():
    with pytest.raises(DanglingEdgeError) as caught:
        check_workflow(workflow(node("a", "zzzzzz")))
    assert caught.value.hint is None


def test_an_unknown_trigger_rule_is_shown_with_those_that_exist():
    with pytest.raises(DefinitionError) as caught:
        check_workflow(workflow(node("a", trigger_rule="all_sucess", line=7)))
    assert caught.value.message == (
        f"expected the trigger rule of task `a` to be one of {', '.join(TRIGGER_RULES)}, got: `all_sucess`"
    )
    assert (caught.value.hint, caught.value.place) == ("did you mean `all_success`?", "sales.py:7")


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        ([node("a", parent="g", line=5)], "task `a` of workflow `daily` is inside `g`, which does not exist"),
        (
            [node("g"), node("a", parent="g", line=5)],
            "task `a` of workflow `daily` is inside `g`, which is not a group",
        ),
        ([node("a", parent=None, line=5)], "task `a` of workflow `daily` has no parent"),
        (
            [node("a", kind="mapped", line=5)],
            "task `a` of workflow `daily` must be mapped exactly if it has a length",
        ),
        (
            [node("a", expand=Length(op="literal", length=1), line=5)],
            "task `a` of workflow `daily` must be mapped exactly if it has a length",
        ),
    ],
)
def test_a_task_in_the_wrong_place_or_of_the_wrong_kind(nodes, message):
    with pytest.raises(DefinitionError) as caught:
        check_workflow(workflow(*nodes))
    assert (caught.value.message, caught.value.place) == (message, "sales.py:5")


def test_a_workflow_begins_with_its_root():
    with pytest.raises(DefinitionError, match="workflow `daily` has no root"):
        check_workflow(Workflow(name="daily", language="python", nodes=()))
    with pytest.raises(DefinitionError, match="the first node of workflow `daily` must be its root group, got: `a`"):
        check_workflow(Workflow(name="daily", language="python", nodes=(Node(key="a"),)))


def test_the_handlers_of_a_failure_are_checked_like_everything_else():
    handlers = (Node(key="a^error", upstream=("b",)),)
    with pytest.raises(DanglingEdgeError, match=r"task `a\^error` waits for `b`"):
        check_workflow(workflow(node("a", on_failure=handlers), node("b")))


def test_a_fragment_has_several_tops():
    check_nodes([Node(key="a"), Node(key="b", upstream=("a",))], "task `x`", is_fragment=True)


def test_leaves_are_what_nobody_waits_for():
    assert leaves([node("a"), node("b", "a"), node("c", "a")]) == {"b", "c"}
