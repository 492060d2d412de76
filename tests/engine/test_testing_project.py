"""The project on disk that acceptance tests are made with."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from headrace.testing.project import Completed, Project


@pytest.fixture
def project(tmp_path):
    return Project(tmp_path)


def test_files_are_written_without_their_indentation(project):
    project.write(
        "queries/one.sql",
        """
        SELECT 1
          FROM two
        """,
    )
    assert project.read("queries/one.sql") == "SELECT 1\n  FROM two\n"
    assert project.files() == ["queries/one.sql"]


@pytest.mark.parametrize("how", ["run", "call"])
def test_a_command_gives_its_output_and_its_exit_code(project, how):
    done = getattr(project, how)("--version")
    assert (done.exit_code, done.err) == (0, "")
    assert done.out.count(".") == 2


@pytest.mark.parametrize("how", ["run", "call"])
def test_a_mistake_is_a_sentence_and_an_exit_code(project, how):
    done = getattr(project, how)("rnu")
    assert done.exit_code == 2
    assert "there is no command `rnu`" in done.err
    with pytest.raises(AssertionError, match="there is no command `rnu`"):
        done.check()


def test_a_call_leaves_folder_and_environment_as_they_were(project):
    before = (Path.cwd(), dict(os.environ))
    project.call("--version")
    assert (Path.cwd(), dict(os.environ)) == before


def test_a_workflow_runs_to_its_end(project):
    project.write(
        "hello.dig",
        """
        +a:
          echo>: hello
        """,
    )
    done = project.run("run", "hello.dig", "--json").check()
    assert '"success"' in done.out


def test_json_is_read():
    assert Completed(0, '{"a": 1}', "").json == {"a": 1}
