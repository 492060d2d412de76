"""The page about Digdag's operators leaves none out, its examples load, and those that can run do."""

from __future__ import annotations

import re
import shutil

import pytest
from pages import ROOT, blocks_of

from headrace.authoring.dig import load_dig_file
from headrace.authoring.dig.operator_names import UNSUPPORTED
from headrace.operators.dig import operator_names
from headrace.testing.project import Project

PAGE = ROOT / "docs" / "reference" / "digdag-operators.md"


def test_every_operator_has_its_heading_and_its_example():
    sections = re.split(r"^### `(\w+)>`$", PAGE.read_text(), flags=re.M)
    described = dict(zip(sections[1::2], sections[2::2], strict=True))
    assert sorted(described) == operator_names()
    assert [name for name, text in described.items() if f"{name}>:" not in text] == []


def test_what_is_not_there_is_said():
    section = PAGE.read_text().partition("## What is not there")[2]
    assert [name for name in UNSUPPORTED if name.partition(".")[0] not in section] == []


def test_examples_load(tmp_path):
    for number, block in enumerate(blocks_of(PAGE)):
        if block.language == "yaml" and not block.note:
            (tmp_path / f"example{number}.dig").write_text(block.text)
            assert load_dig_file(tmp_path, f"example{number}.dig").workflows


@pytest.mark.parametrize(("file", "expected"), [("own.dig", "hello job"), ("both.dig", "5 rows")])
def test_examples_run(tmp_path, file, expected):
    project = Project(tmp_path)
    for block in blocks_of(PAGE):
        if block.note:
            project.write(block.note, block.text)
    project.run("run", file).check()
    assert expected in "".join(path.read_text() for path in (project.home / "logs").rglob("*.log"))


@pytest.mark.skipif(shutil.which("ruby") is None, reason="there is no `ruby` on the PATH")
def test_the_ruby_example_runs(tmp_path):
    project = Project(tmp_path)
    section = PAGE.read_text().partition("### `rb>`")[2].partition("### ")[0]
    dig, ruby = re.findall(r"```(?:yaml|ruby)\n(.*?)```", section, re.S)
    project.write("reports.dig", dig)
    project.write("tasks/reports.rb", ruby)
    project.run("run", "reports.dig").check()
    printed = sorted(path.read_text() for path in (project.home / "logs").rglob("*.log"))
    assert any("+reports+report^sub+subtask0" in text for text in printed)
    assert any("daily" in text for text in printed)
