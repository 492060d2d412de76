"""DAG files in zip archives."""

from __future__ import annotations

import zipfile

import pytest

from headrace.authoring.dag.loading import load_dag_file
from headrace.errors import LoadError
from headrace.testing.project import Project

FLOW = """
from airflow.sdk import DAG, task
from zipped_parts.answers import ANSWER
with DAG("zipped"):
    @task
    def answer(): return ANSWER
    answer()
"""


def archive(path, **extra):
    members = {
        "flow.py": FLOW,
        "zipped_parts/__init__.py": "",
        "zipped_parts/answers.py": "ANSWER = 42",
        "zipped_parts/not_loaded.py": "raise ValueError('only modules at the root are loaded')",
    }
    with zipfile.ZipFile(path, "w") as target:
        for name, text in (members | extra).items():
            target.writestr(name, text)


def test_a_run_of_a_zipped_dag(tmp_path):
    project = Project(tmp_path)
    archive(project.root / "flows.zip")
    done = project.run("run", "flows.zip", "--json").check().json
    assert done["state"] == "success"


def test_errors_name_the_module_in_the_archive(tmp_path):
    archive(tmp_path / "flows.zip", **{"broken.py": "import airflow\nnothing\n"})
    with pytest.raises(LoadError) as caught:
        load_dag_file(tmp_path, "flows.zip")
    assert (caught.value.file, caught.value.line) == ("flows.zip/broken.py", 2)


def test_something_else_with_that_name_is_told(tmp_path):
    (tmp_path / "flows.zip").write_text("no archive")
    with pytest.raises(LoadError, match=r"`flows\.zip` could not be read as a zip archive"):
        load_dag_file(tmp_path, "flows.zip")


def test_kept_bytes_are_loaded_after_the_archive_has_changed(tmp_path):
    archive(tmp_path / "flows.zip")
    kept = (tmp_path / "flows.zip").read_bytes()
    (tmp_path / "flows.zip").unlink()
    assert set(load_dag_file(tmp_path, "flows.zip", kept).dags) == {"zipped"}
