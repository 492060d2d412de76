"""Mistakes in `.dig` files: each is one sentence with the file and the line."""

from __future__ import annotations

import pytest

from headrace.errors import DefinitionError
from headrace.projects import find_files, parse_files


@pytest.mark.parametrize(
    ("text", "line", "message", "hint"),
    [
        ("\n_exports: {}", 2, "workflow `wf` has an unknown key: `_exports`", "did you mean `_export`?"),
        ("step: {echo>: 1}", 1, "has an unknown key: `step`", "the names of tasks begin with `+`: write `+step`"),
        ("steps: {+a: {echo>: 1}}", 1, "unknown key: `steps`", "the names of tasks begin with `+`: write `+steps`"),
        ("# nothing", 1, "expected `wf.dig` to hold a map, got: nothing", "a workflow has at least one `+task`"),
        ("_secrets: {}", 1, "workflow `wf` has an unknown key: `_secrets`", None),
        ("_background: true", 1, "unknown key: `_background`", None),
        ("sh>: ls", 1, "workflow `wf` has an unknown key: `sh>`", "put it into a task: `+name: {sh>: …}`"),
        ("+t:\n  foo: 1", 2, "task `+wf+t` has an unknown key: `foo`", "put the parameter `foo` below `_export`"),
        ("+t:\n  _paralel: true\n  +a: {echo>: 1}", 2, "unknown key: `_paralel`", "did you mean `_parallel`?"),
        ("+t:", 1, "expected task `+wf+t` to be a map, got: `null`", None),
        ("+a: {echo>: 1}\n+t: 5", 2, "expected task `+wf+t` to be a map, got: `5`", None),
        ("+t: [1]", 1, "expected task `+wf+t` to be a map", None),
        ("+t:\n  sh>: 1\n  py>: 2", 3, "task `+wf+t` has more than one operator: `sh>` and `py>`", "make each"),
        ("+t:\n  sh>: 1\n  +a: {echo>: 1}", 3, "runs `sh>`, so it cannot have the task `+a` inside", None),
        ("+t:\n  _type: 5", 2, "to name its operator, got: `5`", None),
        ("+a b: {echo>: 1}", 1, "expected the name of task `+a b` to be `+` and then letters", None),
        ("+x^y: {echo>: 1}", 1, "expected the name of task `+x^y`", None),
        (f"+{'x' * 255}: {{echo>: 1}}", 1, "is 256 characters long, at most 255 fit", None),
        (
            "+g:\n  _parallel: ${x}\n  +a: {echo>: 1}",
            2,
            "expected `_parallel` of task `+wf+g` to be known before the run",
            None,
        ),
        ("_parallel: maybe\n+a: {echo>: 1}", 1, "expected `_parallel` of workflow `wf` to be true or false", None),
        ("_parallel: {limit: -1}", 1, "expected `_parallel` of workflow `wf` not to be negative", None),
        ("_parallel: true\n+t:\n  echo>: 1\n  _background: true", 4, "has `_background`, but its group is", None),
        ("+t:\n  echo>: 1\n  _after: [+a]", 3, "task `+wf+t` has `_after`, but its group is not `_parallel`", None),
        (
            "_parallel: true\n+a1: {echo>: 1}\n+t:\n  echo>: 1\n  _after: [+a]",
            5,
            "runs after `+a`",
            "did you mean `+a1`?",
        ),
        ("_parallel: true\n+t: {echo>: 1, _after: [+u]}\n+u: {echo>: 1}", 2, "which is not an earlier task", None),
        ("_parallel: true\n+t: {echo>: 1, _after: 5}", 2, "expected `_after` of task `+wf+t` to be a list", None),
        ("+t:\n  sh>: x\n  _retry: often", 3, "expected `_retry` of task `+wf+t` to be a whole number", None),
        ("+t:\n  sh>: x\n  _retry: true", 3, "to be a whole number, got: `true`", None),
        ("+t:\n  sh>: x\n  _retry: {limit: 1, interval: -1}", 3, "not to be negative, got: `-1`", None),
        ("+t:\n  sh>: x\n  _retry: {interval: 1}", 3, "expected `_retry` of task `+wf+t` to have a `limit`", None),
        ("+t:\n  sh>: x\n  _retry: {limit: 1, interval_type: x}", 3, "interval_type constant or exponential", None),
        ("+t:\n  sh>: x\n  _export: 5", 3, "expected `_export` of task `+wf+t` to be a map, got: `5`", None),
        ("+t:\n  sh>: x\n  _error: 5", 3, "expected `_error` of task `+wf+t` to be a map, got: `5`", None),
        ("_error:\n  +a:\n    foo: 1", 3, "task `+wf^error+a` has an unknown key: `foo`", None),
        ("+t:\n  sh>: x\n  _disable: maybe", 3, "expected `_disable` of task `+wf+t` to be true or false", None),
        ("+a: {echo>: 1}\ntimezone: Asia/Tokio", 2, "to be a time zone, got: `Asia/Tokio`", "`Asia/Tokyo`"),
        ("timezone: 9", 1, "expected `timezone` to be a time zone, got: `9`", None),
    ],
)
def test_mistakes_name_the_line(project, text, line, message, hint):
    with pytest.raises(DefinitionError) as caught:
        project.compile(text)
    assert message in caught.value.message
    assert (caught.value.file, caught.value.line) == ("wf.dig", line)
    if hint is not None:
        assert hint in (caught.value.hint or "")


@pytest.mark.parametrize("name", ["1.dig", "+a.dig", "^a.dig", "a.dig.dig"])
def test_files_whose_names_cannot_be_workflows(project, name):
    with pytest.raises(DefinitionError, match="of workflow"):
        project.load("+t: {echo>: 1}", name)


def test_a_mistake_in_an_included_file_names_that_file(project):
    project.write("tasks.dig", "+a: {echo>: 1}\n+b:\n  junk: 1\n")
    with pytest.raises(DefinitionError) as caught:
        project.compile("+first: {echo>: 1}\n!include : tasks.dig\n")
    assert caught.value.place == "tasks.dig:3"


def test_all_mistakes_of_a_file_are_told_at_once(project):
    with pytest.raises(DefinitionError) as caught:
        project.compile("""
            +a: {ekho>: 1}
            +b:
              +c: {echo>: 1, _retry: many}
              +d:
            +e: {echo>: 1, sh>: 2}
            wrong: 1
        """)
    assert caught.value.place == "wf.dig:2"
    assert caught.value.message == "task `+wf+a`: unknown operator `ekho>`"
    assert caught.value.detail.splitlines() == [
        "also:",
        "  expected `_retry` of task `+wf+b+c` to be a whole number, got: `many` (`wf.dig:4`)",
        "  expected task `+wf+b+d` to be a map, got: `null` (`wf.dig:5`)",
        "  task `+wf+e` has more than one operator: `echo>` and `sh>` (`wf.dig:6`), make each a `+task` of its own",
        "  workflow `wf` has an unknown key: `wrong` (`wf.dig:7`), put the parameter `wrong` below `_export`",
    ]


def test_all_broken_files_of_a_project_are_told_at_once(project):
    files = {
        "a.dig": "+t:\n  ekho>: 1\n",
        "b.dig": "+t: {echo>: 1\n",
        "c.dig": "+t: {echo>: 1}\n",
        "d.dig": "+x: {call>: c, _parallel: 1}\nschedule: {dayly>: '00:00:00'}\n+y: 5\n",
    }
    for file, text in files.items():
        project.write(file, text)
    parsed = {one.file: one.error for one in parse_files(project.root, find_files(project.root))}
    assert {file: error and (error.file, error.line) for file, error in parsed.items()} == {
        "a.dig": ("a.dig", 2), "b.dig": ("b.dig", 1), "c.dig": None, "d.dig": ("d.dig", 2),
    }  # fmt: skip
    assert "expected task `+d+y` to be a map, got: `5` (`d.dig:3`)" in parsed["d.dig"].detail
    assert parsed["a.dig"].hint == "did you mean `echo>`?"
