"""The JSON form of a workflow gives back the same workflow, and its digest tells workflows apart."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.definition import (
    TRIGGER_RULES,
    Length,
    Node,
    Place,
    Retry,
    Schedule,
    Workflow,
    digest,
    node_from_json,
    nodes_from_json,
    to_json,
    workflow_from_json,
)
from headrace.errors import DefinitionError

text = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False) | text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3),
    max_leaves=8,
)
json_objects = st.dictionaries(text, json_values, max_size=3)
seconds = st.floats(0, 1e6)
places = st.builds(Place, file=text, line=st.none() | st.integers(1, 9_999))
retries = st.builds(Retry, limit=st.integers(0, 9), delay_seconds=seconds, jitter=st.booleans())
literals = st.builds(Length, op=st.just("literal"), length=st.integers(0, 9))
lengths = literals | st.builds(Length, op=st.sampled_from(["product", "concat"]), parts=st.tuples(literals, literals))
leaf_nodes = st.builds(
    Node,
    key=text,
    parent=st.none() | text,
    upstream=st.lists(text, max_size=2).map(tuple),
    trigger_rule=st.sampled_from(TRIGGER_RULES),
    config=json_objects,
    export=json_objects,
    retry=retries,
    expand=st.none() | lengths,
    decides=st.booleans(),
    timeout_seconds=st.none() | seconds,
    place=places,
)
nodes = leaf_nodes | st.builds(Node, key=text, kind=st.just("group"), on_failure=st.tuples(leaf_nodes, leaf_nodes))
schedules = st.none() | st.builds(Schedule, type=text, spec=json_objects, catch_up=st.sampled_from(["all", "latest"]))
workflows = st.builds(
    Workflow,
    name=text,
    language=st.sampled_from(["python", "dig"]),
    nodes=st.lists(nodes, max_size=3).map(tuple),
    params=json_objects,
    schedule=schedules,
    tags=st.lists(text, max_size=2).map(tuple),
    place=places,
)


@given(workflows)
def test_a_workflow_comes_back_from_its_json_as_it_was(workflow):
    again = workflow_from_json(to_json(workflow))
    assert again == workflow
    assert to_json(again) == to_json(workflow)
    assert digest(again) == digest(workflow)


@given(st.lists(nodes, max_size=3).map(tuple))
def test_nodes_come_back_from_their_json_as_they_were(fragment):
    assert nodes_from_json(to_json(fragment)) == fragment
    assert all(node_from_json(to_json(node)) == node for node in fragment)


@given(workflows, workflows)
def test_the_digest_tells_different_workflows_apart(one, other):
    assert (digest(one) == digest(other)) == (to_json(one) == to_json(other))


def test_the_digest_does_not_change_between_versions_of_this_program():
    workflow = Workflow(
        name="daily",
        language="python",
        nodes=(Node(key="", kind="group"), Node(key="a", parent="", config={"b": 1, "a": [1.5, None, "ü"]})),
    )
    assert digest(workflow) == "d062eb68e74c7fc0118d3d9153d630bbbceae21f991db1fccd70c89ad3dd2a90"


def test_what_is_at_its_default_is_left_out():
    assert to_json(Node(key="a", trigger_rule="all_success")) == b'{"key":"a"}'


def test_maps_keep_the_order_in_which_they_were_written():
    node = node_from_json(to_json(Node(key="a", config={"z": 1, "a": 2})))
    assert list(node.config) == ["z", "a"]


@pytest.mark.parametrize("value", [object(), {1, object()}, "\ud800"])
def test_a_value_that_is_not_json_is_an_error_of_the_definition(value):
    with pytest.raises(DefinitionError, match="a definition must be made of JSON values"):
        to_json(Node(key="a", config={"x": value}))
