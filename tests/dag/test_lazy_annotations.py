"""Annotations that only a type checker can evaluate. Python 3.14 takes them without asking for strings."""

from __future__ import annotations

import sys

import pytest

from headrace.authoring.signatures import return_annotation, signature_of
from headrace.operators.dig.python_program import call

ONLY_FOR_CHECKERS = """
from typing import TYPE_CHECKING
if TYPE_CHECKING:
    from nowhere import Nothing
"""
IMPORTS = """
from airflow.sdk import DAG, BaseOperator, asset, dag, task, task_group
from airflow.providers.standard.operators.python import PythonOperator
"""
STRINGS = "from __future__ import annotations\n"


@pytest.fixture(
    params=[
        pytest.param(STRINGS, id="strings"),
        pytest.param(
            "",
            id="lazy",
            marks=pytest.mark.skipif(sys.version_info < (3, 14), reason="evaluated with the function before 3.14"),
        ),
    ]
)
def head(request):
    return request.param + ONLY_FOR_CHECKERS


def test_functions_of_tasks(project, head):
    project.load(f"""{head}{IMPORTS}
def double(x: Nothing, ds: Nothing = None) -> Nothing: return x * 2
with DAG("d"):
    @task
    def split(x: Nothing = 1) -> dict[str, int]: return {{"a": x}}
    @task
    def keep() -> Nothing: return {{"a": 1}}
    split()
    keep()
    PythonOperator(task_id="double", python_callable=double, op_args=[4])
""")
    assert bytes(project.run("split").values["a"]) == b"1"
    assert set(project.run("keep").values) == {"return_value"}
    assert bytes(project.run("double").values["return_value"]) == b"8"


def test_functions_of_groups_dags_and_assets_and_constructors(project, head):
    loaded = project.load(f"""{head}{IMPORTS}
class Own(BaseOperator):
    def __init__(self, size: Nothing, **kwargs: Nothing) -> None:
        super().__init__(**kwargs)
@asset(schedule=None)
def made(self: Nothing, context: Nothing) -> Nothing: ...
@dag
def d(size: Nothing = 3):
    @task_group
    def inside(size: Nothing) -> Nothing:
        Own(task_id="own", size=size)
    inside.expand(size=[1, 2])
d()
""")
    assert sorted(workflow.name for workflow in loaded.workflows) == ["d", "made"]


JOB = """
class Job:
    def run(self, day: Nothing, hour: Nothing = 0) -> Nothing:
        print(day, hour)
"""


def test_methods_of_py_tasks(head, tmp_path, monkeypatch, capsys):
    (tmp_path / "lazily_annotated.py").write_text(head + JOB)
    monkeypatch.syspath_prepend(tmp_path)
    try:
        call("lazily_annotated.Job.run", {"day": "monday", "other": 1})
    finally:
        sys.modules.pop("lazily_annotated", None)
    assert capsys.readouterr().out == "monday 0\n"


def test_what_cannot_be_evaluated_is_still_told(head):
    names = {}
    exec(compile(head + JOB, "job.py", "exec", dont_inherit=True), names)
    assert list(signature_of(names["Job"].run).parameters) == ["self", "day", "hour"]
    assert return_annotation(names["Job"].run) is not None
    assert return_annotation(print) is None
