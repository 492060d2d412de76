"""The examples of the guides about writing and testing DAGs run."""

from __future__ import annotations

import subprocess
import sys

import pytest
from pages import ROOT, blocks_of

from headrace.authoring.dag.loading import load_dag_file
from headrace.testing.dag_run import run_dag

GUIDES = ROOT / "docs" / "guides"


def examples():
    for block in blocks_of(GUIDES / "write-dags.md"):
        if block.language == "python":
            yield pytest.param(block.text, id=f"line {block.line}")


@pytest.mark.parametrize("text", list(examples()))
def test_examples_of_writing_run(tmp_path, text):
    (tmp_path / "flow.py").write_text(text)
    (dag,) = load_dag_file(tmp_path, "flow.py").dags.values()
    assert run_dag(dag).state == "success"


def test_examples_of_testing_run(tmp_path):
    program, plugins, tests = [one for one in blocks_of(GUIDES / "test-dags.md") if one.language == "python"]
    (tmp_path / "dags").mkdir()
    (tmp_path / "dags" / "small.py").write_text(program.text)
    (tmp_path / "conftest.py").write_text(plugins.text)
    (tmp_path / tests.note).write_text(tests.text)
    for command in (
        [sys.executable, "dags/small.py"],
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"],
    ):
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
