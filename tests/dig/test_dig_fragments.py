"""What tasks grow while they run: names, parents and edges of `^sub`, `^check` and of loops."""

from __future__ import annotations

import pytest

from headrace.authoring.dig import compile_fragment
from headrace.definition import Place, check_nodes
from headrace.errors import DefinitionError

PLACE = Place(file="wf.dig", line=9)


def grown(result):
    assert result.outcome == "success", result.error
    check_nodes(result.growth, "growth", is_fragment=True)
    return [node.key.removeprefix("+wf") for node in result.growth]


def test_a_body_with_an_operator_is_one_task():
    (node,) = compile_fragment({"sh>": "ls"}, "+wf+t^sub", PLACE)
    assert (node.key, node.parent, node.operator, node.place) == ("+wf+t^sub", None, "sh", PLACE)


def test_a_body_with_tasks_is_a_group():
    nodes = compile_fragment({"+x": {"sh>": 1}, "+y": {"+z": {"sh>": 1}}}, "+wf+t^sub", PLACE)
    assert [(node.key, node.parent, node.kind, node.upstream) for node in nodes] == [
        ("+wf+t^sub", None, "group", ()),
        ("+wf+t^sub+x", "+wf+t^sub", "task", ()),
        ("+wf+t^sub+y", "+wf+t^sub", "group", ("+wf+t^sub+x",)),
        ("+wf+t^sub+y+z", "+wf+t^sub+y", "task", ()),
    ]


def test_an_empty_body_grows_nothing():
    assert compile_fragment({}, "+wf+t^sub", PLACE) == ()


def test_generated_names_may_have_a_caret():
    assert compile_fragment({"+x^y": {"sh>": 1}}, "+wf^sla", PLACE)[1].key == "+wf^sla+x^y"


def test_a_broken_body_names_the_growing_task():
    with pytest.raises(DefinitionError) as caught:
        compile_fragment(5, "+wf+t^check", PLACE, directive="_check")
    assert str(caught.value) == "expected `_check` of task `+wf+t` to be a map, got: `5` (`wf.dig:9`)"


def test_loop(project):
    result = project.run("+t: {loop>: 3, _do: {echo>: '${i}'}}")
    assert grown(result) == ["+t^sub", "+t^sub+loop-0", "+t^sub+loop-1", "+t^sub+loop-2"]
    assert [node.export for node in result.growth[1:]] == [{"i": 0}, {"i": 1}, {"i": 2}]
    assert [node.upstream for node in result.growth[1:]] == [(), ("+wf+t^sub+loop-0",), ("+wf+t^sub+loop-1",)]
    assert result.growth[3].config == {"_command": "${i}"}


@pytest.mark.parametrize("text", ["loop>: '${n}'", "{loop>: ~, count: 2}", "loop>: '2'"])
def test_loop_counts(project, text):
    text = text.strip("{}")
    assert len(grown(project.run(f"+t: {{{text}, _do: {{echo>: 1}}}}", params={"n": 2}))) == 3


def test_loop_zero_times(project):
    assert grown(project.run("+t: {loop>: 0, _do: {echo>: 1}}")) == []


def test_for_each_names_its_tasks_by_their_values(project):
    result = project.run(
        "+each:\n  for_each>: {fruit: [apple, orange], verb: [eat, throw away]}\n  _do: {echo>: 1}", key="+wf+each"
    )
    assert grown(result) == [
        "+each^sub",
        "+each^sub+for-0=fruit=0=apple&1=verb=0=eat",
        "+each^sub+for-0=fruit=0=apple&1=verb=1=throw%20aw",
        "+each^sub+for-0=fruit=1=orange&1=verb=0=eat",
        "+each^sub+for-0=fruit=1=orange&1=verb=1=throw%20aw",
    ]
    assert result.growth[2].export == {"fruit": "apple", "verb": "throw away"}


def test_for_each_takes_json_texts_and_any_value(project):
    text = """
        +t:
          for_each>: {v: "${list}"}
          _do: {echo>: 1}
    """
    result = project.run(text, params={"list": [{"a": 1}, None, "*~/é"]})
    assert grown(result)[1:] == [
        "+t^sub+for-0=v=0=%7B%22a%22%3A1%7D",
        "+t^sub+for-0=v=1=null",
        "+t^sub+for-0=v=2=%2A%7E%2F%C3%A9",
    ]
    assert [node.export["v"] for node in result.growth[1:]] == [{"a": 1}, None, "*~/é"]


def test_for_each_over_an_empty_list_does_nothing(project):
    assert grown(project.run("+t: {for_each>: {a: [], b: [1]}, _do: {echo>: 1}}")) == []


@pytest.mark.parametrize("how", ["step: 4", "slices: 3"])
def test_for_range(project, how):
    result = project.run(f"+r: {{for_range>: {{from: 0, to: 10, {how}}}, _do: {{echo>: 1}}}}", key="+wf+r")
    assert grown(result) == [
        "+r^sub",
        "+r^sub+range-from=0&to=4",
        "+r^sub+range-from=4&to=8",
        "+r^sub+range-from=8&to=10",
    ]
    assert result.growth[3].export == {"range": {"from": 8, "to": 10, "index": 2}}


@pytest.mark.parametrize(
    ("parallel", "upstreams"),
    [("true", [0, 0, 0]), ("'${p}'", [0, 0, 0]), ("{limit: 2}", [0, 0, 2]), ("false", [0, 1, 1])],
)
def test_loops_in_parallel(project, parallel, upstreams):
    result = project.run(f"+t: {{loop>: 3, _parallel: {parallel}, _do: {{echo>: 1}}}}", params={"p": True})
    assert [len(node.upstream) for node in result.growth[1:]] == upstreams


def test_the_loops_variables_come_before_the_bodys_own_exports(project):
    result = project.run("+t: {loop>: 1, _do: {_export: {j: '${i}', i: 9}, +a: {echo>: 1}}}")
    assert list(result.growth[1].export.items()) == [("i", 0), ("j", "${i}")]
    assert grown(result) == ["+t^sub", "+t^sub+loop-0", "+t^sub+loop-0+a"]


@pytest.mark.parametrize(
    ("condition", "branches", "expected"),
    [
        ("true", "_do: {echo>: 1}", ["+t^sub"]),
        ("'${n > 1}'", "_do: {+a: {echo>: 1}}", ["+t^sub", "+t^sub+a"]),
        ("false", "_do: {echo>: 1}", []),
        ("''", "_do: {echo>: 1}", []),
        ("0", "_else_do: {echo>: 1}", ["+t^sub"]),
        ("true", "_else_do: {echo>: 1}", []),
    ],
)
def test_if(project, condition, branches, expected):
    assert grown(project.run(f"+t: {{if>: {condition}, {branches}}}", params={"n": 2})) == expected


def test_a_check_follows_the_subtasks(project):
    result = project.run("+t: {loop>: 1, _do: {echo>: 1}, _check: {+a: {sh>: x}}}")
    assert grown(result) == ["+t^sub", "+t^sub+loop-0", "+t^check", "+t^check+a"]
    assert [(node.parent, node.upstream) for node in result.growth[2:]] == [
        (None, ("+wf+t^sub",)),
        ("+wf+t^check", ()),
    ]


def test_a_check_without_subtasks(project):
    (check,) = project.run("+t: {echo>: 1, _check: {sh>: '${later}'}}").growth
    assert (check.key, check.upstream, check.config) == ("+wf+t^check", (), {"_command": "${later}"})


def test_call_grows_the_tasks_of_a_file(project):
    project.write(
        "sub/child.dig",
        """
        timezone: Asia/Tokyo
        schedule: {daily>: 07:00:00}
        _export: {a: 1}
        _retry: 2
        _error: {echo>: oops}
        +x: {sh>: pwd}
        +y: {call>: sibling}
        """,
    )
    project.write("sub/sibling.dig", "+z: {echo>: 1}")
    result = project.run("+t: {call>: sub/child}")
    assert grown(result) == ["+t^sub", "+t^sub+x", "+t^sub+y"]
    sub, x, y = result.growth
    assert (sub.export, sub.retry.limit) == ({"a": 1, "_workdir": "sub"}, 2)
    assert [node.key for node in sub.on_failure] == ["+wf+t^sub^error"]
    assert (str(x.place), y.upstream) == ("sub/child.dig:7", ("+wf+t^sub+x",))
    nested = project.run_node(project.load("+t: {call>: sub/child}"), y, params=sub.export)
    assert grown(nested) == ["+t^sub+y^sub", "+t^sub+y^sub+z"]


def test_generated_tasks_run_like_any_other(project, capfd):
    text = "+t: {for_each>: {fruit: [apple]}, _do: {echo>: 'a ${fruit} in ${task_name}'}}"
    (_, task) = project.run(text).growth
    assert project.run_node(project.load(text), task).outcome == "success"
    assert capfd.readouterr().out == "a apple in +wf+t^sub+for-0=fruit=0=apple\n"


@pytest.mark.parametrize(
    ("task", "message"),
    [
        ("loop>: x, _do: {echo>: 1}", "expected parameter `loop>` to be a whole number, got: `x`"),
        ("loop>: 1", "parameter `_do` is required but not set"),
        ("loop>: 1, _do: 5", "expected parameter `_do` to be a map"),
        ("loop>: 1, _do: {junk: 1}", "task `+wf+t^sub+loop-0` has an unknown key: `junk`"),
        ("loop>: 1, _do: {echo>: 1}, _parallel: maybe", "expected parameter `_parallel` to be true or false"),
        ("for_each>: 5, _do: {echo>: 1}", "expected parameter `for_each>` to be a map, got: `5`"),
        ("for_each>: {a: 5}, _do: {echo>: 1}", "expected variable `a` of `for_each>` to be a list, got: `5`"),
        ("for_range>: {from: 0, to: 9}, _do: {echo>: 1}", "to have either `step` or `slices`"),
        ("for_range>: {from: 0, to: 9, step: 0}, _do: {echo>: 1}", "to be positive, got: `0`"),
        ("for_range>: {to: 9, step: 1}, _do: {echo>: 1}", "parameter `from` of `for_range>` is required"),
        ("if>: maybe, _do: {echo>: 1}", "expected parameter `if>` to be true or false, got: `maybe`"),
        ("if>: true", "task `+wf+t` needs `_do` or `_else_do`"),
        ("call>: none", "there is no file `none.dig` to call"),
        ("call>: ../other/x", "expected `../other/x` to be inside the project"),
        ("call>: /etc/passwd", "to be inside the project"),
        ("call>: broken", "workflow `broken` has an unknown key: `sh>`"),
    ],
)
def test_growing_that_fails(project, task, message):
    project.write("broken.dig", "sh>: ls")
    result = project.run(f"+t: {{{task}}}")
    assert result.outcome == "failed"
    assert message in result.error.message
    assert result.error.traceback == ""


LIMITED = "_parallel: {limit: 2}, +a: {echo>: 1}, +b: {echo>: 1}, +c: {echo>: 1}"


@pytest.mark.parametrize(
    "text",
    [
        f"+t: {{if>: true, _do: {{{LIMITED}}}}}",
        f"+t: {{if>: false, _else_do: {{{LIMITED}}}}}",
        f"+t: {{loop>: 1, _do: {{{LIMITED}}}}}",
        f"+t: {{for_each>: {{n: [1]}}, _do: {{{LIMITED}}}}}",
        f"+t: {{for_range>: {{from: 0, to: 1, step: 1}}, _do: {{{LIMITED}}}}}",
        f"+t: {{echo>: 1, _check: {{{LIMITED}}}}}",
        f"+t: {{if>: true, _do: {{+g: {{{LIMITED}}}}}}}",
    ],
)
def test_a_limit_makes_chunks_in_every_body_that_grows(project, text):
    waits = {node.key[-2:]: [key[-2:] for key in node.upstream] for node in project.run(text).growth}
    assert (waits["+a"], waits["+b"], waits["+c"]) == ([], [], ["+a", "+b"])


@pytest.mark.parametrize("where", ["_error: {%s}\n+x: {echo>: 1}", "+x: {echo>: 1, _error: {%s}}", "+x:\n  +y: {%s}"])
def test_a_limit_makes_chunks_in_handlers_and_inner_groups(project, where):
    nodes = project.nodes(where % LIMITED)
    everything = [*nodes.values(), *(one for node in nodes.values() for one in node.on_failure)]
    waits = {node.key[-2:]: [key[-2:] for key in node.upstream] for node in everything}
    assert (waits["+a"], waits["+b"], waits["+c"]) == ([], [], ["+a", "+b"])


@pytest.mark.parametrize("loop", ["for_each>: {n: [1, 2, 3]}", "for_range>: {from: 0, to: 3, step: 1}", "loop>: 3"])
@pytest.mark.parametrize("limit", ["{limit: 2}", "{limit: '${p}'}"])
def test_a_limit_makes_chunks_of_the_rounds_of_every_loop(project, loop, limit):
    result = project.run(f"+t: {{{loop}, _parallel: {limit}, _do: {{echo>: 1}}}}", params={"p": 2})
    assert [len(node.upstream) for node in result.growth[1:]] == [0, 0, 2]
