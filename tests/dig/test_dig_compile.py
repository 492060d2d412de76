"""From `.dig` maps to nodes: order, groups, directives, names."""

from __future__ import annotations

import pytest

from headrace.definition import Node, Place, Retry, check_nodes, to_json, workflow_from_json


def upstreams(nodes: dict[str, Node]) -> dict[str, list[str]]:
    """Short names of upstream tasks by short name."""
    return {
        key.removeprefix("+wf+"): [other.removeprefix("+wf+") for other in node.upstream]
        for key, node in nodes.items()
        if key != "+wf"
    }


def test_tasks_run_in_the_order_of_the_file(project):
    nodes = project.nodes("+b: {echo>: 1}\n+a: {echo>: 2}\n+c: {echo>: 3}")
    assert list(nodes) == ["+wf", "+wf+b", "+wf+a", "+wf+c"]
    assert upstreams(nodes) == {"b": [], "a": ["b"], "c": ["a"]}


def test_a_workflow_is_a_group_named_after_its_file(project):
    workflow = project.compile("timezone: Asia/Tokyo\n+a: {sh>: ls, x: 1}\n")
    assert (workflow.name, workflow.language, workflow.timezone) == ("wf", "dig", "Asia/Tokyo")
    assert workflow.unique_logical_time
    alert = Node(
        key="+wf^failure-alert",
        operator="notify",
        config={"_command": "Workflow session attempt failed"},
        isolation="reuse",
        cleans_up=True,
        place=Place(file="wf.dig", line=1),
    )
    assert workflow.nodes == (
        Node(key="+wf", kind="group", on_failure=(alert,), place=Place(file="wf.dig", line=1)),
        Node(
            key="+wf+a",
            parent="+wf",
            operator="sh",
            config={"_command": "ls", "x": 1},
            isolation="programs",
            place=Place(file="wf.dig", line=2),
        ),
    )


def test_groups_nest(project):
    nodes = project.nodes("+g:\n  +a: {echo>: 1}\n  +h:\n    +b: {echo>: 1}\n+z: {echo>: 1}")
    assert list(nodes) == ["+wf", "+wf+g", "+wf+g+a", "+wf+g+h", "+wf+g+h+b", "+wf+z"]
    assert [node.parent for node in nodes.values()] == [None, "+wf", "+wf+g", "+wf+g", "+wf+g+h", "+wf"]
    assert nodes["+wf+z"].upstream == ("+wf+g",)
    assert nodes["+wf+g+h+b"].place == Place(file="wf.dig", line=4)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("true", {"a": [], "b": [], "c": [], "d": [], "e": []}),
        ('"true"', {"a": [], "b": [], "c": [], "d": [], "e": []}),
        ("{limit: 2}", {"a": [], "b": [], "c": ["a", "b"], "d": ["a", "b"], "e": ["c", "d"]}),
        ("{limit: 0}", {"a": [], "b": [], "c": [], "d": [], "e": []}),
        ("{limit: '1'}", {"a": [], "b": ["a"], "c": ["b"], "d": ["c"], "e": ["d"]}),
        ("false", {"a": [], "b": ["a"], "c": ["b"], "d": ["c"], "e": ["d"]}),
    ],
)
def test_parallel_groups_and_their_chunks(project, value, expected):
    tasks = "".join(f"+{name}: {{echo>: 1}}\n" for name in "abcde")
    assert upstreams(project.nodes(f"_parallel: {value}\n{tasks}")) == expected


def test_background_tasks_wait_for_nobody_and_the_next_task_waits_for_them(project):
    background = "{_background: true, echo>: 1}"
    text = f"+a: {{echo>: 1}}\n+b: {background}\n+c: {background}\n+d: {{echo>: 1}}\n+e: {{echo>: 1}}\n+f: {background}"
    assert upstreams(project.nodes(text)) == {"a": [], "b": [], "c": [], "d": ["a", "b", "c"], "e": ["d"], "f": []}


def test_after_adds_edges_in_a_parallel_group(project):
    text = "_parallel: true\n+a: {echo>: 1}\n+b: {echo>: 1}\n+c: {_after: [+b, +a], echo>: 1}\n+d: {echo>: 1}"
    assert upstreams(project.nodes(text)) == {"a": [], "b": [], "c": ["a", "b"], "d": []}


def test_a_big_parallel_group_compiles_quickly(project):
    tasks = "".join(f"+t{number}: {{echo>: 1}}\n" for number in range(3000))
    nodes = project.nodes(f"_parallel: {{limit: 3}}\n{tasks}")
    assert nodes["+wf+t2999"].upstream == ("+wf+t2994", "+wf+t2995", "+wf+t2996")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("3", Retry(limit=3)),
        ("'3'", Retry(limit=3)),
        ("0", Retry()),
        ("-1", Retry()),
        ("{limit: 2, interval: 10}", Retry(limit=2, delay_seconds=10.0)),
        ("{limit: 2, interval: 10, interval_type: constant}", Retry(limit=2, delay_seconds=10.0)),
        (
            "{limit: 2, interval: 10, interval_type: exponential, max_interval: 30}",
            Retry(limit=2, delay_seconds=10.0, backoff=2.0, max_delay_seconds=30.0),
        ),
    ],
)
def test_retry_forms(project, value, expected):
    nodes = project.nodes(f"+t: {{sh>: x, _retry: {value}}}\n+g:\n  _retry: {value}\n  +a: {{echo>: 1}}")
    assert nodes["+wf+t"].retry == nodes["+wf+g"].retry == expected


def test_a_retry_that_only_a_run_could_know_is_evaluated_by_the_task_or_asked_for_by_the_group(project):
    nodes = project.nodes("+g:\n  _retry: ${n}\n  +a: {echo>: 1}\n+t: {sh>: x, _retry: '${n}'}")
    assert nodes["+wf+g"].retry == nodes["+wf+t"].retry == Retry()
    question = nodes["+wf+g"].retry_question
    assert (question.key, question.config, question.decides) == ("+wf+g^retry", {"_command": "${n}"}, False)
    assert nodes["+wf+t"].retry_question is None
    assert nodes["+wf+t"].config["_retry"] == "${n}"


def test_error_tasks_are_compiled_with_their_owner(project):
    nodes = project.nodes(
        "_error: {echo>: root}\n+t:\n  sh>: x\n  _error:\n    +mail: {echo>: 1, _error: {echo>: 2}}\n    +b: {echo>: 3}"
    )
    assert [node.key for node in nodes["+wf"].on_failure] == ["+wf^error", "+wf^failure-alert"]
    errors = nodes["+wf+t"].on_failure
    assert [(node.key, node.parent, node.kind) for node in errors] == [
        ("+wf+t^error", None, "group"),
        ("+wf+t^error+mail", "+wf+t^error", "task"),
        ("+wf+t^error+b", "+wf+t^error", "task"),
    ]
    assert errors[2].upstream == ("+wf+t^error+mail",)
    assert [node.key for node in errors[1].on_failure] == ["+wf+t^error+mail^error"]
    assert "_error" not in nodes["+wf+t"].config
    check_nodes(errors, "test", is_fragment=True)


def test_exports_are_kept_beside_the_parameters(project):
    nodes = project.nodes("_export: {b: 1, a: '${b}'}\n+t: {sh>: x, _export: {c: 2}, d: 3}")
    assert list(nodes["+wf"].export.items()) == [("b", 1), ("a", "${b}")]
    assert (nodes["+wf+t"].export, nodes["+wf+t"].config) == ({"c": 2}, {"_command": "x", "d": 3})


def test_a_disabled_task_is_an_empty_group_in_the_sequence(project):
    nodes = project.nodes("+a: {echo>: 1}\n+b:\n  _disable: true\n  +c: {sh>: x}\n  junk: 1\n+d: {echo>: 1}")
    assert list(nodes) == ["+wf", "+wf+a", "+wf+b", "+wf+d"]
    assert (nodes["+wf+b"].kind, nodes["+wf+b"].upstream) == ("group", ("+wf+a",))
    assert nodes["+wf+d"].upstream == ("+wf+b",)


def test_a_disabled_task_is_in_its_place_whatever_else_it_says(project):
    nodes = project.nodes("+a: {echo>: 1}\n+b: {echo>: 1, _background: true, _disable: true}\n+c: {echo>: 1}")
    assert (nodes["+wf+b"].upstream, nodes["+wf+c"].upstream) == (("+wf+a",), ("+wf+b",))
    nodes = project.nodes("_parallel: true\n+a: {echo>: 1}\n+b: {echo>: 1, _after: [+a], _disable: true}")
    assert nodes["+wf+b"].upstream == ()


def test_bodies_that_become_tasks_later_stay_raw_and_in_order(project):
    text = (
        "+t:\n  for_each>: {z: [1], a: [2]}\n  _do:\n    +z: {sh>: '${z}'}\n    +a: {sh>: 1}\n  _check: {sh>: '${q}'}"
    )
    node = project.nodes(text)["+wf+t"]
    assert (node.operator, list(node.config), list(node.config["_do"])) == (
        "for_each",
        ["_command", "_do", "_check"],
        ["+z", "+a"],
    )
    assert node.config["_do"]["+z"] == {"sh>": "${z}"}


def test_the_order_of_maps_survives_the_json_form(project):
    workflow = project.compile(
        "_export: {b: 1, a: 2}\n+t:\n  if>: true\n  _do:\n    +z: {echo>: 1}\n    +a: {echo>: 1}"
    )
    again = workflow_from_json(to_json(workflow))
    assert again == workflow
    assert list(again.nodes[0].export) == ["b", "a"]
    assert list(again.nodes[1].config["_do"]) == ["+z", "+a"]


def test_the_long_form_of_an_operator(project):
    node = project.nodes("+t: {_type: sh, _command: ls, shell: [bash]}")["+wf+t"]
    assert (node.operator, node.config) == ("sh", {"_command": "ls", "shell": ["bash"]})


def test_a_task_may_be_a_list_of_maps(project):
    nodes = project.nodes("+t:\n  - {_export: {a: 1}}\n  - +a: {echo>: 1}\n  - +b: {echo>: 1}")
    assert list(nodes) == ["+wf", "+wf+t", "+wf+t+a", "+wf+t+b"]
    assert nodes["+wf+t+b"].place.line == 4
    assert project.nodes("+t: []")["+wf+t"].kind == "group"


def test_an_error_directive_without_a_body_is_none(project):
    assert project.nodes("+t:\n  echo>: 1\n  _error:")["+wf+t"].on_failure == ()


@pytest.mark.parametrize(
    ("operator", "isolation"),
    [
        ("sh", "programs"),
        ("rb", "programs"),
        ("py", "default"),
        ("echo", "reuse"),
        ("for_each", "reuse"),
        ("call", "reuse"),
    ],
)
def test_only_operators_without_user_code_share_a_process(project, operator, isolation):
    assert project.nodes(f"+t: {{{operator}>: x}}")["+wf+t"].isolation == isolation


def test_unusual_names(project):
    assert "+wf+a=[1]{2}%&@,.`_-" in project.nodes("+a=[1]{2}%&@,.`_-:\n  echo>: 1")
    assert list(project.nodes("+:\n  +b^c: {echo>: 1}")) == ["+wf", "+wf+", "+wf++b^c"]
