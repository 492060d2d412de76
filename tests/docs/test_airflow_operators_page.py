"""The page about Airflow's operators: its paths lead somewhere, its examples load and run, and it leaves nobody out."""

from __future__ import annotations

import importlib
import re

import pytest
from pages import ROOT, blocks_of

from headrace.authoring.dag.loading import load_dag_file
from headrace.compat.airflow import install
from headrace.compat.airflow.paths import PATHS
from headrace.testing.project import Project

install()
PAGE = ROOT / "docs" / "reference" / "airflow-operators.md"
STANDARD = "airflow.providers.standard"
ROW = re.compile(
    r"^\| (?P<names>`[A-Z].*?) \| `(?P<new>(?:operators|sensors)\.\w+)` \| (?:`(?P<old>airflow\.\S+)`|–) \|$", re.M
)


def rows():
    for match in ROW.finditer(PAGE.read_text()):
        yield re.findall(r"`(\w+)`", match["names"]), f"{STANDARD}.{match['new']}", match["old"]


def test_both_paths_of_each_operator_lead_to_the_same_class():
    for names, new, old in rows():
        for name in names:
            found = getattr(importlib.import_module(new), name)
            assert old is None or getattr(importlib.import_module(old), name) is found


def test_every_standard_operator_and_sensor_is_listed():
    listed = {(name, new) for names, new, _ in rows() for name in names}
    offered = {
        (name, path)
        for path, names in PATHS.items()
        for name in names
        if path.startswith((f"{STANDARD}.operators.", f"{STANDARD}.sensors.")) and re.search("(Operator|Sensor)", name)
    }
    assert {one for one in offered if not one[0].endswith(("Error", "Exception"))} <= listed


def examples():
    return [block for block in blocks_of(PAGE) if block.language == "python"]


@pytest.mark.parametrize("block", examples(), ids=lambda block: f"line {block.line}")
def test_examples_load(block, tmp_path):
    (tmp_path / "example.py").write_text(block.text)
    assert load_dag_file(tmp_path, "example.py").workflows


@pytest.mark.parametrize(
    "block", [block for block in examples() if block.note == "run"], ids=lambda block: f"line {block.line}"
)
def test_examples_run(block, tmp_path):
    project = Project(tmp_path)
    project.write("example.py", block.text)
    name = re.search(r'DAG\("(\w+)"', block.text)[1]
    project.run("run", "example.py", name).check()
