"""A `.dig` file whose bytes are given is read as if the file held them."""

from __future__ import annotations

import pytest

from headrace.authoring import load_file
from headrace.errors import LoadError


def operators(loaded):
    return {node.key: node.config for node in loaded.workflows[0].nodes if node.kind == "task"}


def test_given_bytes_replace_the_file_but_includes_come_from_disk(project):
    project.write("wf.dig", "+broken: [")
    project.write("part.dig", "+b:\n  echo>: included")
    loaded = load_file(project.root, "wf.dig", b"+a:\n  echo>: given\n!include : part.dig\n")
    assert set(operators(loaded)) == {"+wf+a", "+wf+b"}


def test_given_bytes_need_no_file(project):
    assert set(operators(load_file(project.root, "gone.dig", b"+a:\n  echo>: given\n"))) == {"+gone+a"}


def test_given_bytes_that_are_no_text_are_refused_like_those_of_a_file(project):
    project.write("wf.dig", "+a:\n  echo>: fine")
    with pytest.raises(LoadError, match=r"`wf\.dig` is not UTF-8 text"):
        load_file(project.root, "wf.dig", b"+a: \xff")
