"""Whatever dies, in whatever way: every try gets one result, and no process is left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from toy_project import collect, is_running, run_all, value_of, wait_for_file, wait_gone, wait_until

CRASHES = """
    import ctypes, os, signal, threading

    def fine(request, channel): return os.getpid()
    def leave(request, channel): os._exit(7)
    def leave_quietly(request, channel): os._exit(0)
    def segfault(request, channel): ctypes.string_at(0)
    def kill_itself(request, channel): os.kill(os.getpid(), signal.SIGKILL)
    def terminate_itself(request, channel): os.kill(os.getpid(), signal.SIGTERM); threading.Event().wait()
    def hang_up(request, channel): os.closerange(3, 100); threading.Event().wait()
"""


@pytest.mark.parametrize(
    ("operator", "words"),
    [
        ("leave", "left with exit code 7 after 0 s, without a result"),
        ("leave_quietly", "left with exit code 0 after 0 s, without a result"),
        ("segfault", "was killed by signal 11 after 0 s"),
        ("kill_itself", "was killed by signal 9 after 0 s\nhint: often the machine ran out of memory"),
        ("terminate_itself", "was killed by signal 15 after 0 s"),
    ],
)
def test_a_process_that_dies_without_a_result_fails_its_try(local, project, operator, words):
    project.write(CRASHES)
    executor = local()
    (result,) = run_all(executor, project.request(operator, try_number=2))
    assert result.outcome == "failed" and result.is_retryable and result.error is not None
    assert (result.error.type, result.error.message) == ("ProcessDied", f"task `{operator}` (try 2) {words}")
    (after,) = run_all(executor, project.request("fine"))
    assert after.outcome == "success"


def test_the_log_of_a_process_that_died_ends_with_the_reason(local, project):
    project.write(
        """
        import os, signal, sys
        def half_a_line(request, channel):
            sys.stdout.write("half a line")
            sys.stdout.flush()
            os.kill(os.getpid(), signal.SIGKILL)
        def nothing(request, channel): os._exit(3)
        """
    )
    spoke, silent = project.request("half_a_line"), project.request("nothing")
    run_all(local(), spoke, silent)
    first, second, hint = project.log(spoke).splitlines()
    assert first == "half a line" and hint == "hint: often the machine ran out of memory"
    words = "task `half_a_line` (try 1) was killed by signal 9 after 0 s"
    assert second.endswith(f" ERROR headrace.task: ProcessDied: {words}")
    (only,) = project.log(silent).splitlines()
    assert "left with exit code 3 after 0 s, without a result" in only


def test_a_process_that_closes_its_line_is_killed(local, project):
    project.write(CRASHES)
    (result,) = run_all(local(), project.request("hang_up"))
    assert result.outcome == "failed" and result.error is not None
    assert result.error.type == "ProcessDied"


def test_a_crash_hurts_no_other_try(local, project):
    project.write(CRASHES)
    results = run_all(local(), *[project.request(name) for name in ("fine", "segfault", "fine", "leave", "fine")])
    assert [result.outcome for result in results] == ["success", "failed", "success", "failed", "success"]


WAITING = """
    import os, pathlib, signal, subprocess, sys, threading

    def say(request, pids):
        path = pathlib.Path(request.node.config["file"])
        path.with_suffix(".part").write_text(" ".join(map(str, pids)))
        path.with_suffix(".part").rename(path)

    def family(request, channel):
        "waits for ever, with a child of its own"
        child = subprocess.Popen(["sleep", "1000"])
        say(request, [os.getpid(), child.pid, os.getppid()])
        threading.Event().wait()

    def stubborn(request, channel):
        "ignores SIGTERM, and so does its fork"
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        ready, write = os.pipe()
        child = os.fork()
        if child == 0:
            os.write(write, b"!")
        else:
            os.read(ready, 1)
            say(request, [os.getpid(), child, os.getppid()])
        while True:
            threading.Event().wait()

    def tidy(request, channel):
        try:
            say(request, [os.getpid()])
            threading.Event().wait()
        finally:
            print("cleaned up", flush=True)

    def straying(request, channel):
        child = subprocess.Popen(["sleep", "1000"])
        return [os.getpid(), child.pid]

    def nothing(request, channel): pass
"""


def started(executor, project, operator, **changes):
    """A request for a task that tells its process ids and waits, and those ids."""
    path = project.root / f"{operator}.pids"
    request = project.request(operator, config={"file": str(path)}, **changes)
    executor.submit([request])
    wait_until(executor, path.exists)
    return request, [int(pid) for pid in path.read_text().split()]


def test_a_task_process_that_is_killed_is_noticed_and_its_children_go_with_it(local, project):
    project.write(WAITING)
    executor = local()
    request, (pid, child, _) = started(executor, project, "family")
    os.kill(pid, signal.SIGKILL)
    (result,) = collect(executor, [request])
    assert result.error is not None
    assert "was killed by signal 9" in result.error.message
    wait_gone(pid, child)


def test_a_canceled_try_is_stopped_with_its_children(local, project):
    project.write(WAITING)
    executor = local()
    request, (pid, child, _) = started(executor, project, "family")
    executor.cancel(request.task_id, request.fence)
    (result,) = collect(executor, [request])
    assert result.outcome == "stopped"
    wait_gone(pid, child)


def test_a_canceled_task_can_clean_up(local, project):
    project.write(WAITING)
    executor = local()
    request, _ = started(executor, project, "tidy")
    executor.cancel(request.task_id, request.fence)
    (result,) = collect(executor, [request])
    assert (result.outcome, project.log(request)) == ("stopped", "cleaned up\n")


def test_a_task_that_ignores_sigterm_is_killed_after_its_grace(local, project):
    project.write(WAITING)
    executor = local()
    request, (pid, child, _) = started(executor, project, "stubborn", kill_grace_seconds=0.05)
    executor.cancel(request.task_id, request.fence)
    (result,) = collect(executor, [request])
    assert result.outcome == "stopped"
    wait_gone(pid, child)


def test_a_task_that_ignores_its_timeout_is_stopped_by_the_executor(local, project):
    project.write(WAITING)
    executor = local(timeout_grace_seconds=0.0)
    request, (pid, child, _) = started(executor, project, "stubborn", timeout_seconds=0.05, kill_grace_seconds=0.05)
    (result,) = collect(executor, [request])
    assert result.outcome == "failed" and result.is_retryable and result.error is not None
    assert result.error.type == "TaskTimeout"
    assert result.error.message == "task `stubborn` (try 1) ran longer than 0.05 s"
    wait_gone(pid, child)


def test_what_a_finished_task_leaves_running_is_killed(local, project):
    project.write(WAITING)
    (result,) = run_all(local(), project.request("straying"))
    wait_gone(*value_of(result))


def test_a_warm_parent_that_is_killed_takes_its_tries_with_it_and_is_replaced(local, project):
    project.write(WAITING)
    executor = local()
    request, (pid, child, zygote) = started(executor, project, "family")
    os.kill(zygote, signal.SIGKILL)
    (result,) = collect(executor, [request])
    assert result.outcome == "failed" and result.error is not None
    assert result.error.type == "ProcessDied"
    assert "the warm process that it was forked from died" in result.error.message
    wait_gone(pid, child, zygote)
    (after,) = run_all(executor, project.request("nothing"))
    assert after.outcome == "success"


def test_task_processes_die_with_their_warm_parent_even_if_the_executor_is_busy(local, project):
    project.write(WAITING)
    executor = local()
    _, (pid, _, zygote) = started(executor, project, "stubborn")
    os.kill(zygote, signal.SIGKILL)
    wait_gone(pid)


def test_tries_that_wait_for_a_warm_parent_survive_its_death(local, project):
    project.write(WAITING)
    executor = local(slots=2)
    request, (_, _, zygote) = started(executor, project, "family")
    second = project.request("nothing")
    os.kill(zygote, signal.SIGKILL)
    wait_gone(zygote)
    executor.submit([second])
    results = collect(executor, [request, second])
    assert results[0].outcome == "failed"
    # The second one was either still waiting or had just been handed to a child that died with the first.
    assert results[1].outcome == "success" or results[1].error.type == "ProcessDied"


def test_closing_stops_everything(local, project):
    project.write(WAITING)
    executor = local()
    _, (pid, child, zygote) = started(executor, project, "stubborn")
    executor.close(0.05)
    wait_gone(pid, child, zygote)
    assert executor.running() == []


def test_no_descriptors_are_left_open(local, project):
    project.write(CRASHES)
    before = len(os.listdir("/proc/self/fd"))
    executor = local()
    run_all(executor, *[project.request(name) for name in ("fine", "segfault", "leave", "fine")])
    executor.close(0)
    assert len(os.listdir("/proc/self/fd")) == before


OWNER = """
    import json, sys
    from pathlib import Path
    sys.path.insert(0, {tests!r})
    from toy_project import Project, local_executor

    project = Project(Path({root!r}))
    executor = local_executor()
    executor.submit([project.request({operator!r}, config={{"file": {pids!r}}})])
    executor.poll(None)
"""


@pytest.mark.parametrize("operator", ["family", "stubborn"])
def test_when_the_executor_is_killed_its_whole_tree_dies(project, operator):
    project.write(WAITING)
    pids = project.root / "pids"
    script = project.root / "owner.py"
    code = OWNER.format(tests=str(Path(__file__).parent), root=str(project.root), operator=operator, pids=str(pids))
    script.write_text("\n".join(line[4:] for line in code.splitlines()))
    with subprocess.Popen([sys.executable, str(script)]) as owner:
        family = [int(pid) for pid in wait_for_file(pids).split()]
        assert all(is_running(pid) for pid in family)
        owner.send_signal(signal.SIGKILL)
    wait_gone(*family)


def test_when_the_executor_is_killed_a_file_that_hangs_while_loading_dies_too(project):
    pids = project.root / "pids"
    project.write(
        f"""
        import os, pathlib, threading
        part = pathlib.Path({str(pids)!r} + ".part")
        part.write_text(str(os.getpid()))
        part.rename({str(pids)!r})
        threading.Event().wait()
        """
    )
    script = project.root / "owner.py"
    code = OWNER.format(tests=str(Path(__file__).parent), root=str(project.root), operator="never", pids=str(pids))
    script.write_text("\n".join(line[4:] for line in code.splitlines()))
    with subprocess.Popen([sys.executable, str(script)]) as owner:
        zygote = int(wait_for_file(pids))
        owner.send_signal(signal.SIGKILL)
    wait_gone(zygote)
