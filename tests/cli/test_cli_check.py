"""`headrace check` and `headrace rendered`."""

from __future__ import annotations

import pytest

from headrace.testing.project import Project

GOOD = """
from airflow.sdk import DAG, task
from airflow.operators.bash import BashOperator
with DAG("good", schedule=None, params={"who": "you"}):
    BashOperator(task_id="hi", bash_command="echo {{ params.who }}", env={"API_KEY": "{{ params.who }}"})
    @task(map_index_template="{{ task.op_kwargs.city }}")
    def visit(city): return city
    visit.expand(city=["Berlin", "Graz"])
"""


@pytest.fixture
def project(tmp_path):
    return Project(tmp_path)


def test_good_and_broken_files_are_told_apart(project):
    project.write("good.py", GOOD)
    project.write("broken.py", "from airflow.sdk import DAG\nwith DAG('broken'):\n    undefined_name\n")
    checked = project.call("check", ".")
    assert checked.exit_code == 1
    assert "good.py: workflow `good`: 2 tasks, no schedule" in checked.out
    assert "broken.py:3: error: `broken.py` could not be loaded: NameError: name 'undefined_name'" in checked.out
    assert "2 files, 1 with errors" in checked.err


def test_a_workflow_that_two_files_define_is_refused_as_by_a_server(project):
    project.write("good.py", GOOD)
    project.write("more.py", GOOD)
    for paths in ((".",), ("good.py", "more.py")):
        checked = project.call("check", *paths)
        assert checked.exit_code == 1
        assert "more.py: error: workflow `good` is defined twice: in `good.py` and in `more.py`" in checked.out
        assert "2 files, 1 with errors" in checked.err


def test_a_file_that_is_named_twice_is_no_rival_of_itself(project):
    project.write("good.py", GOOD)
    assert project.call("check", "good.py", "good.py").exit_code == 0


def test_what_would_be_saved_is_told_as_json(project):
    project.write("good.py", GOOD)
    (file,) = project.call("check", "--json", "good.py").check().json["files"]
    (workflow,) = file["workflows"]
    assert (file["error"], workflow["name"]) == (None, "good")
    assert [node["key"] for node in workflow["definition"]["nodes"]] == ["", "hi", "visit"]


def test_a_path_that_does_not_exist_is_a_sentence(project):
    checked = project.call("check", "nothing.py")
    assert "expected a workflow file or a folder, but `nothing.py` does not exist" in checked.err
    assert checked.exit_code != 0


def test_rendered_arguments_and_names_of_instances_are_kept(project):
    project.write("good.py", GOOD)
    project.run("run", "good.py", "-p", "who=me").check()
    rendered = project.call("rendered", "latest", "hi", "--json").check().json["rendered"]
    assert rendered == {"bash_command": "echo me", "env": {"API_KEY": "***"}}
    assert "bash_command:\n  echo me\n" in project.call("rendered", "latest", "hi").check().out
    assert "visit[1] Graz" in project.call("tasks", "latest").check().out
    assert project.call("tasks", "latest", "--json").json["tasks"]["visit[0]"]["label"] == "Berlin"
    assert "nothing was rendered" in project.call("rendered", "latest", "visit[0]").err


def test_parameters_are_compared_with_what_a_dag_asks_for(project):
    project.write(
        "asks.py",
        "from airflow.sdk import DAG, Param\n"
        "with DAG('asks', schedule=None, params={'n': Param(1, type='integer')}):\n    pass\n",
    )
    assert project.call("check", "asks.py", "-p", "n=2").exit_code == 0
    refused = project.call("check", "asks.py", "-p", "n=two")
    assert refused.exit_code == 1
    assert "parameter `n` of workflow `asks` is not valid" in refused.out


def test_a_file_that_reads_variables_of_the_environment_is_fine(project, monkeypatch):
    monkeypatch.setenv("AIRFLOW_VAR_REGION_OF_CHECK", "eu")
    monkeypatch.setenv("AIRFLOW_CONN_SHOP_OF_CHECK", "postgres://me:secret@shop/db")
    project.write(
        "reads.py",
        """
        from airflow.hooks.base import BaseHook
        from airflow.models import DAG, Variable
        region = Variable.get("region_of_check")
        host = BaseHook.get_connection("shop_of_check").host
        dag = DAG(f"load_{region}_{host}")
        """,
    )
    assert "workflow `load_eu_shop`" in project.call("check", "reads.py").check().out
