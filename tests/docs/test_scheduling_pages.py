"""The workflows that the pages about scheduling and assets show can be loaded."""

from __future__ import annotations

import textwrap

import pytest
from pages import ROOT, blocks_of

from headrace.authoring import load_file

CONCEPTS = ROOT / "docs" / "concepts"
PREAMBLE = "from airflow.sdk import DAG, Asset, AssetAlias, asset, task\n"


def python_blocks():
    for name in ("scheduling.md", "assets.md", "partitions.md"):
        for block in blocks_of(CONCEPTS / name):
            if block.language == "python":
                yield pytest.param(block.text, id=f"{name}:{block.line}")


@pytest.mark.parametrize("text", list(python_blocks()))
def test_python_that_is_shown_loads(tmp_path, text):
    if "DAG(" not in text and "@asset" not in text:
        text = "with DAG('shown'):\n" + textwrap.indent(text + "export()\n", "    ")
    (tmp_path / "shown.py").write_text(PREAMBLE + text)
    assert load_file(tmp_path, "shown.py").workflows


def test_dig_that_is_shown_loads(tmp_path):
    (block,) = (one for one in blocks_of(CONCEPTS / "assets.md") if one.language == "yaml")
    (tmp_path / "shown.dig").write_text(block.text)
    (workflow,) = load_file(tmp_path, "shown.dig").workflows
    assert [(use.name, use.role) for use in workflow.assets] == [("orders", "schedule"), ("report", "outlet")]
