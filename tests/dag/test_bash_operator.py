"""Shell commands: output, result, environment, exit codes and long lines."""

from __future__ import annotations

import io
import os
import sys

import pytest

from headrace.operators.bash import copy_lines

FLOW = """
from datetime import timedelta
from airflow.sdk import DAG, task
from airflow.operators.bash import BashOperator
with DAG("d"):
    {body}
"""


@pytest.fixture
def bash(project):
    def run(arguments):
        project.load(FLOW.format(body=f"BashOperator(task_id='b', {arguments})"))
        return project.run("b")

    return run


def test_last_line_is_the_result_and_all_lines_are_shown(bash, project, capfd):
    result = bash("bash_command='echo one; echo two >&2; printf \"three  \"'")
    assert project.value(result) == "three"
    assert capfd.readouterr().out == "one\ntwo\nthree  "


@pytest.mark.parametrize(
    ("arguments", "outcome"),
    [
        ("bash_command='exit 0'", "success"),
        ("bash_command='exit 99'", "skipped"),
        ("bash_command='exit 5'", "failed"),
        ("bash_command='exit 5', skip_on_exit_code=[4, 5]", "skipped"),
        ("bash_command='exit 99', skip_on_exit_code=None", "failed"),
    ],
)
def test_exit_codes(bash, arguments, outcome):
    assert bash(arguments).outcome == outcome


def test_failures_say_what_happened(bash):
    assert bash("bash_command='exit 5'").error.message == "the command of task `b` exited with 5, expected 0"
    assert "killed by signal 9" in bash("bash_command='kill -9 $$'").error.message
    assert "`/nowhere`" in bash("bash_command='true', cwd='/nowhere'").error.message


def test_environment_is_inherited_replaced_or_extended(bash, project, monkeypatch, capfd):
    monkeypatch.setenv("FROM_OUTSIDE", "yes")
    show = "bash_command='echo \"$FROM_OUTSIDE-$MINE-$AIRFLOW_CTX_TASK_ID-$AIRFLOW_CTX_DAG_RUN_ID\"'"
    assert project.value(bash(show)) == "yes--b-manual__1"
    assert project.value(bash(f"{show}, env={{'MINE': '{{{{ ds }}}}'}}")) == "-2026-02-03-b-manual__1"
    assert project.value(bash(f"{show}, env={{'MINE': 'x'}}, append_env=True")) == "yes-x-b-manual__1"


def test_folder_is_fresh_and_removed(bash, project, tmp_path, capfd):
    folder = project.value(bash("bash_command='touch x; pwd'"))
    assert "headrace-" in folder and not os.path.exists(folder)
    assert project.value(bash(f"bash_command='pwd', cwd={str(tmp_path)!r}")) == str(tmp_path)


def test_a_task_whose_own_folder_was_deleted(bash, project, tmp_path, monkeypatch, capfd):
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    assert project.value(bash(f"bash_command='pwd', cwd={str(tmp_path)!r}")) == str(tmp_path)


def test_command_longer_than_an_argument_may_be(bash, project, capfd):
    assert project.value(bash("bash_command='echo hi #' + 'x' * 300_000")) == "hi"


def test_output_processor_makes_the_result(bash, project, capfd):
    assert project.value(bash("bash_command='echo 5', output_processor=int")) == 5


def test_command_stays_in_the_process_group_of_the_task(bash, project, capfd):
    group = f'{sys.executable} -c "import os; print(os.getpgrp())"'
    assert project.value(bash(f"bash_command={group!r}")) == str(os.getpgrp())


def test_a_shell_that_cannot_be_found(bash):
    error = bash("bash_command='true', env={'PATH': '/nowhere'}").error
    assert (error.type, "bash" in error.message) == ("FileNotFoundError", True)


def test_a_command_that_ignores_the_signal_to_stop_is_killed(bash, monkeypatch, capfd):
    monkeypatch.setattr("headrace.operators.bash._GRACE_SECONDS", 0.1)
    more = "execution_timeout=timedelta(seconds=0.3)"
    result = bash(f"bash_command='trap \"\" TERM; echo $$; while true; do sleep 0.01; done', {more}")
    assert result.error.type == "AirflowTaskTimeout"
    with pytest.raises(ProcessLookupError):
        os.kill(int(capfd.readouterr().out), 0)


def test_timeout_ends_the_command(bash, project, capfd):
    result = bash("bash_command='echo $$; exec sleep 60', execution_timeout=timedelta(seconds=0.2)")
    assert result.error.type == "AirflowTaskTimeout"
    with pytest.raises(ProcessLookupError):
        os.kill(int(capfd.readouterr().out), 0)


def test_function_returns_the_command(project, capfd):
    project.load(FLOW.format(body="@task.bash\n    def b(n):\n        return f'echo {n} {{{{ ds }}}}'\n    b(3)"))
    assert project.value(project.run("b")) == "3 2026-02-03"
    project.load(FLOW.format(body="@task.bash\n    def b():\n        return None\n    b()"))
    assert project.run("b").error.type == "TypeError"


@pytest.mark.parametrize(
    ("chunks", "last"),
    [
        ([b"a\nb\n"], "b"),
        ([b"a\nb"], "b"),
        ([b"a\n", b"b", b"c\n"], "bc"),
        ([b"a\n", b"\n"], ""),
        ([b"\xc3", b"\xbc\n"], "ü"),
        ([b"x" * 65_536, b"y" * 10], "x" * 65_536),
        ([b"x" * 65_536, b"y" * 10, b"\nend"], "end"),
        ([], ""),
    ],
)
def test_last_line_is_found_however_output_is_cut(chunks, last):
    target = io.StringIO()
    with Pipe(chunks) as pipe:
        assert copy_lines(pipe, target, "utf-8") == last
    assert target.getvalue() == b"".join(chunks).decode()


class Pipe:
    """A pipe whose reads give exactly these pieces, one after the other."""

    def __init__(self, chunks):
        self._chunks = list(chunks)
        self._reading, self._writing = os.pipe()

    def fileno(self):
        if self._chunks:
            os.write(self._writing, self._chunks.pop(0))
        elif self._writing is not None:
            self._close_writing()
        return self._reading

    def _close_writing(self):
        os.close(self._writing)
        self._writing = None

    def __enter__(self):
        return self

    def __exit__(self, *exc_info):
        os.close(self._reading)
