"""Tries whose user code runs in programs only: their process serves others, unless a program left something behind."""

from __future__ import annotations

import os
import signal
import sys

import psutil
import pytest
from msgspec.structs import replace
from toy_project import collect, is_running, run_all, value_of, wait_gone, wait_until

from headrace.authoring import load_file

SCRIPT = """
    import os, subprocess

    def script(request, channel):
        pidfile = os.path.join(request.source.root, "left")
        subprocess.run(["/bin/sh", "-c", request.node.config["script"], "sh", pidfile], check=True)
        return os.getpid()
"""

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="only Linux tells a process of its descendants' orphans"
)


@pytest.fixture
def run(local, project):
    """Runs one script after the other; each gives the process that ran it."""
    project.write(SCRIPT)
    executor = local()

    def one(script):
        request = project.request("script", isolation="programs", config={"script": script})
        return value_of(run_all(executor, request)[0])

    return one


def left(project):
    return int((project.root / "left").read_text())


def test_one_process_starts_the_programs_of_many_tries(run):
    assert len({run("true") for _ in range(5)}) == 1


def test_programs_that_have_ended_do_not_count(run):
    # The shell becomes a program that does not wait for what the shell had started, and that has ended before.
    zombie = 'true & while read -r pid name state rest < /proc/$!/stat && [ "$state" != Z ]; do :; done; exec true'
    first = run(zombie)
    assert run("true") == first
    assert psutil.Process(first).children() == []


def test_a_process_leaves_with_what_its_program_left_running(run, project):
    first = run('sleep 1000 & echo $! > "$1"')
    wait_gone(first, left(project))
    assert run("true") != first


def test_a_grandchild_counts_as_well(run, project):
    first = run('(sleep 1000 & echo $! > "$1")')
    wait_gone(first, left(project))


def test_what_left_the_process_group_lives_on_and_its_process_serves_nobody_else(run, project):
    daemon = """setsid sh -c 'echo $$ > "$1.new"; mv "$1.new" "$1"; exec sleep 1000' sh "$1" &"""
    first = run(f'{daemon} while ! [ -e "$1" ]; do :; done')
    try:
        wait_gone(first)
        assert is_running(left(project))
        assert run("true") != first
    finally:
        os.kill(left(project), signal.SIGKILL)


def test_stopping_a_try_stops_its_program(local, project):
    project.write(SCRIPT)
    executor = local()
    script = 'echo $$ > "$1.new"; mv "$1.new" "$1"; exec sleep 1000'
    (first,) = run_all(executor, project.request("script", isolation="programs", config={"script": "true"}))
    request = project.request("script", isolation="programs", config={"script": script})
    executor.submit([request])
    wait_until(executor, (project.root / "left").exists)
    executor.cancel(request.task_id, request.fence)
    assert collect(executor, [request])[0].outcome == "stopped"
    wait_gone(left(project), value_of(first))


def test_a_failure_ends_the_process(local, project):
    project.write(SCRIPT)
    executor = local()
    requests = [
        project.request("script", isolation="programs", config={"script": script})
        for script in ("true", "false", "true")
    ]
    first, failed, last = [run_all(executor, request)[0] for request in requests]
    assert failed.outcome == "failed"
    assert value_of(last) != value_of(first)


BASH = """
from headrace import DAG, BashOperator
with DAG("w"):
    BashOperator(task_id="first", bash_command="export LEFT=1; cd /; umask 0; echo $PPID")
    BashOperator(task_id="second", bash_command="echo $PPID $LEFT $(umask)", env={"MINE": "x"}, append_env=True)
    BashOperator(task_id="third", bash_command="echo $PPID $MINE {{ params.get('none') }}")
"""


def test_bash_tasks_of_a_dag_share_the_process_that_starts_them_and_nothing_else(local, project):
    (project.root / "flow.py").write_text(BASH)
    (workflow,) = load_file(project.root, "flow.py").workflows
    executor, values = local(), []
    for node in workflow.nodes[1:]:
        request = project.request(node.key, file="flow.py")
        source = replace(request.source, language="python", revision="")
        values.append(value_of(run_all(executor, replace(request, node=node, source=source))[0]))
    pid = values[0]
    mask = os.umask(0)
    os.umask(mask)
    assert values == [pid, f"{pid} {mask:04o}", f"{pid} None"]
