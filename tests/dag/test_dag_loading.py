"""What is found in a file, and what a user reads when it cannot be loaded."""

from __future__ import annotations

import pytest

from headrace.errors import DefinitionError, LoadError

HEAD = "from airflow.sdk import DAG, dag, task\n"


def refusal(project, source, name="flow.py"):
    with pytest.raises(LoadError) as raised:
        project.load(source, name)
    return raised.value


def test_globals_and_entered_dags_are_found_in_file_order(project):
    loaded = project.load("""
        from airflow.sdk import DAG, dag

        def build():
            with DAG("inside_a_function"):
                pass

        plain = DAG("global")
        build()
        hidden = [DAG("in_a_list")]
        with DAG("not_registered", auto_register=False):
            pass

        @dag
        def called(): ...

        @dag
        def not_called(): ...

        called()
        with DAG("not_registered_but_global", auto_register=False) as late:
            pass
    """)
    names = [workflow.name for workflow in loaded.workflows]
    assert names == ["global", "inside_a_function", "called", "not_registered_but_global"]
    assert list(loaded.dags) == names


def test_modules_beside_the_file_and_in_the_project_can_be_imported(project):
    project.write("NAME = 'from_root'", "rooted_helper_module.py")
    project.write("NAME = 'from_folder'", "flows/sibling_helper_module.py")
    loaded = project.load(
        HEAD
        + "import rooted_helper_module, sibling_helper_module\n"
        + "DAG_A, DAG_B = DAG(rooted_helper_module.NAME), DAG(sibling_helper_module.NAME)\n",
        "flows/flow.py",
    )
    assert list(loaded.dags) == ["from_root", "from_folder"]
    assert loaded.workflows[0].place.file == "flows/flow.py"


def test_edited_file_is_loaded_afresh(project):
    assert list(project.load(HEAD + "x = DAG('one')").dags) == ["one"]
    assert list(project.load(HEAD + "x = DAG('two')").dags) == ["two"]


def test_exception_points_at_the_innermost_line_of_the_user(project):
    project.write("def load(config):\n    return config['missing']\n", "helper_that_fails.py")
    error = refusal(project, HEAD + "from helper_that_fails import load\nload({})\n")
    assert error.place == "helper_that_fails.py:2"
    assert error.message == "`flow.py` could not be loaded: KeyError: 'missing'"
    assert "line 3, in <module>" in error.detail and "line 2, in load" in error.detail
    assert "loading.py" not in error.detail


def test_exception_inside_our_code_points_at_the_users_line(project):
    error = refusal(project, HEAD + "with DAG('d'):\n    DAG('has space')\n")
    assert error.place == "flow.py:3"
    assert "dag id" in error.message
    assert "naming.py" not in error.detail


def test_syntax_error_has_its_line(project):
    error = refusal(project, HEAD + "\nx = (1,\n")
    assert error.place == "flow.py:3"
    assert "was never closed" in error.message


def test_missing_module_has_a_hint(project):
    error = refusal(project, "import surely_not_installed\n")
    assert error.place == "flow.py:1"
    assert "`surely_not_installed`" in error.hint


@pytest.mark.parametrize(("call", "shown"), [("sys.exit(3)", "sys.exit(3)"), ("exit_now()", "sys.exit()")])
def test_exit_while_loading_is_an_error(project, call, shown):
    error = refusal(project, f"import sys\ndef exit_now():\n    sys.exit()\n{call}\n")
    assert error.message == f"`flow.py` called {shown} while it was loaded"
    assert error.line is not None


def test_base_exceptions_are_caught_too(project):
    assert "Strange" in refusal(project, "class Strange(BaseException): ...\nraise Strange('x')\n").message


def test_file_without_dag_says_so(project):
    error = refusal(project, HEAD + "@dag\ndef forgotten(): ...\n")
    assert error.message == "`flow.py` has no DAG"
    assert "call your `@dag` function" in error.hint


def test_file_that_is_not_there_is_an_error(project):
    from headrace.authoring.dag.loading import load_dag_file

    with pytest.raises(LoadError, match="could not be read"):
        load_dag_file(project.folder, "nowhere.py")


def test_two_dags_with_one_id_are_refused(project):
    with pytest.raises(DefinitionError, match="two DAGs with the id `d`, the first one at line 2") as raised:
        project.load(HEAD + "a = DAG('d')\nb = DAG('d')\n")
    assert raised.value.place == "flow.py:3"


def test_duplicate_task_points_at_the_second_one(project):
    error = refusal(
        project,
        "from airflow.sdk import DAG\nfrom airflow.operators.empty import EmptyOperator\n"
        "with DAG('d'):\n    EmptyOperator(task_id='a')\n    EmptyOperator(task_id='a')\n",
    )
    assert error.place == "flow.py:5"
    assert "DuplicateTaskIdFound" in error.message


def test_parameter_that_is_no_json_is_refused(project):
    with pytest.raises(DefinitionError, match="parameter `x` of DAG `d`"):
        project.load(HEAD + "a = DAG('d', params={'x': object()})\n")


def test_failed_file_leaves_no_open_dag_behind(project):
    refusal(project, HEAD + "DAG('d').__enter__()\nraise ValueError\n")
    from headrace.authoring.dag import scope

    assert scope.current_dag() is None


def test_example_loads():
    from pathlib import Path

    from headrace.authoring.dag.loading import load_dag_file

    folder = Path(__file__).parents[2] / "examples"
    (workflow,) = load_dag_file(folder, "hello_python.py").workflows
    assert [node.kind for node in workflow.nodes].count("mapped") == 1
    assert "bash" in {node.operator for node in workflow.nodes}


def test_exception_inside_a_library_points_at_the_users_line(project):
    error = refusal(project, "import json\n\njson.loads('{')\n")
    assert error.place == "flow.py:3"
    assert "decoder.py" not in error.detail and "json.loads" in error.detail


def test_given_bytes_are_executed_in_place_of_the_file(project):
    from headrace.authoring import load_file

    project.write("def (", "folder/flow.py")
    project.write("NAME = 'from_disk'", "folder/beside.py")
    content = HEAD + "from beside import NAME\nassert __file__.endswith('folder/flow.py')\nDAG(NAME)\na = DAG('a')\n"
    loaded = load_file(project.folder, "folder/flow.py", content.encode())
    assert [workflow.name for workflow in loaded.workflows] == ["a"]
    assert (project.folder / "folder/flow.py").read_text() == "def ("


def test_an_error_in_given_bytes_quotes_their_lines(project):
    from headrace.authoring.dag.loading import load_dag_file

    project.write("# nothing\n" * 3)
    with pytest.raises(LoadError) as raised:
        load_dag_file(project.folder, "flow.py", b"# coding: latin-1\nname = '\xe4'\nraise ValueError(name + '!')\n")
    assert raised.value.place == "flow.py:3"
    assert "raise ValueError(name + '!')" in raised.value.detail
    assert "\xe4!" in raised.value.message


def test_given_bytes_need_no_file(project):
    from headrace.authoring.dag.loading import load_dag_file

    assert [
        one.name for one in load_dag_file(project.folder, "gone.py", (HEAD + "a = DAG('a')").encode()).workflows
    ] == ["a"]


def test_a_module_that_makes_dags_for_others_is_no_mistake(project):
    assert project.load(HEAD + "def make(name):\n    with DAG(name) as dag:\n        pass\n    return dag\n").dags == {}
