"""Files that read variables and connections at their top level: when they are parsed, and when they are loaded."""

from __future__ import annotations

import pytest

from headrace.testing.project import Project

DAG = """
    from airflow.sdk import DAG, Variable, task
    from airflow.hooks.base import BaseHook

    SCHEMA = Variable.get("schema")
    TOKEN = Variable.get("api_token")
    print("loading with", TOKEN)
    HOST = BaseHook.get_connection("db").host
    OTHER = Variable.get("other", default="none")

    with DAG(f"flow_{SCHEMA}", schedule=None):
        @task
        def show():
            print("seen:", SCHEMA, TOKEN, HOST, OTHER)

        show()
"""


@pytest.fixture
def project(tmp_path):
    project = Project(tmp_path)
    project.call("variables", "set", "schema", "sales").check()
    project.call("variables", "set", "api_token", "top-secret-token").check()
    project.call("connections", "add", "db", "postgres://u:pass-word@warehouse/x").check()
    return project


def test_a_file_finds_them_at_its_top_level_and_its_tasks_do_not_show_them(project):
    project.write("flow.py", DAG)
    done = project.run("run", "flow.py").check()
    log = project.run("logs", "flow_sales", "show")
    assert "seen: sales *** warehouse none" in log.out, done.err + log.err
    assert "top-secret-token" not in done.out + done.err + log.out


def test_what_goes_wrong_while_loading_shows_no_secrets(project):
    project.write(
        "flow.py",
        """
        from airflow.sdk import Variable
        print(Variable.get("api_token"))
        raise ValueError(Variable.get("api_token"))
        """,
    )
    done = project.run("run", "flow.py")
    assert "ValueError: ***" in done.err and "top-secret-token" not in done.err


def test_a_name_that_is_not_there_is_told_with_its_line(project):
    project.write("flow.py", 'from airflow.sdk import Variable\nVariable.get("schem")\n')
    done = project.run("run", "flow.py")
    assert done.exit_code == 2
    assert "VariableMissing: there is no variable `schem` (`flow.py:2`)" in done.err
