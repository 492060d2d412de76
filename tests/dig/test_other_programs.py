"""`embulk>`, scripts of `py>`, and what was to run in a container: programs that the operators only start."""

from __future__ import annotations

import os
import sys

import pytest


@pytest.fixture
def embulk(tmp_path, monkeypatch):
    """A program called embulk that shows what it was called with."""
    folder = tmp_path / "bin"
    folder.mkdir()
    program = folder / "embulk"
    program.write_text('#!/bin/sh\necho "$1"; cat "$2"; ls -l "$2" | cut -c1-10; exit ${CODE:-0}\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")


def test_embulk_gets_a_file_with_parameters_and_secrets(project, embulk, capfd):
    project.answers.secrets = {"db.password": "pa: ss"}
    project.write("load.yml", "in: {table: '${name}', password: '${secret:db.password}'}\nout: {type: stdout}\n")
    assert project.run("+t: {embulk>: load.yml}", params={"name": "é"}).outcome == "success"
    assert capfd.readouterr().out == ("run\nin:\n  table: é\n  password: 'pa: ss'\nout:\n  type: stdout\n-rw-------\n")


def test_embulk_with_a_config_of_the_task(project, embulk, capfd):
    assert project.run("+t: {embulk>: , config: {in: {n: 1}}}").outcome == "success"
    assert "in:\n  n: 1\n" in capfd.readouterr().out
    failed = project.run("+t: {embulk>: {in: 1}, _env: {CODE: 3}}")
    assert failed.error.message == "Command failed with code 3"
    project.write("bad.yml", "a: [")
    assert "`bad.yml` is not valid YAML" in project.run("+t: {embulk>: bad.yml}").error.message


SCRIPT = """
import json, sys
params = json.load(open(sys.argv[1]))["params"]
json.dump({"store_params": {"b": params["a"] + 1}, "subtask_config": {"+x": {"echo>": 1}}}, open(sys.argv[2], "w"))
"""


def test_py_runs_a_script_of_the_task(project):
    text = "+t:\n  py>:\n  a: 1\n  script: |\n" + "".join(f"    {line}\n" for line in SCRIPT.splitlines())
    result = project.run(text)
    assert (result.store, [node.key for node in result.growth]) == ({"b": 2}, ["+wf+t^sub", "+wf+t^sub+x"])
    silent = project.run("+t: {py>: , script: 'pass'}")
    assert silent.error.message == ("Python command failed with code 0: the program left no result (ResultMissing)")
    silent = project.run("+t: {py>: , script: 'raise SystemExit(3)'}")
    assert silent.error.message == "Python command failed with code 3"
    assert project.run("+t: {py>: }").error.message == "parameter `py>` or `script` is required but not set"


@pytest.mark.parametrize(
    ("task", "program"),
    [
        ("sh>: ':'", "/bin/sh"),
        ("py>: os.getcwd", sys.executable),
        ("py>: os.getcwd, python: [PYTHON, -I]", f"{sys.executable} -I"),
        ("rb>: leave, ruby: [sh, -c, exit]", "sh -c exit"),
        ("embulk>: , config: {in: 1}", "embulk"),
    ],
)
def test_a_task_without_its_container_says_where_it_runs(project, embulk, caplog, task, program):
    text = f"+t: {{{task}}}".replace("PYTHON", sys.executable)
    project.run(text, params={"docker": {"image": "ubuntu:22.04"}})
    (line,) = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    operator, host = task.partition(":")[0], os.uname().nodename
    assert line == (
        "`docker:` (image `ubuntu:22.04`) is ignored: there is no container, "
        f"`{operator}` runs `{program}` on the host `{host}` itself"
    )


def test_a_container_for_one_task_and_for_none(project, caplog):
    assert project.run("+t: {sh>: ':', docker: {pull_always: true}}").outcome == "success"
    assert "`docker:` is ignored" in caplog.text
    caplog.clear()
    assert project.run("+t: {sh>: ':'}", params={"docker": None}).outcome == "success"
    assert "docker" not in caplog.text
