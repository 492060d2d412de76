"""Another thread ends what runs, whatever the one that polls is waiting for: in these tests nobody polls meanwhile."""

from __future__ import annotations

import os
import signal
import threading

from toy_project import collect, is_running, value_of, wait_gone, wait_until

TASKS = """
    import os, pathlib, signal, subprocess, threading, time

    def say(request, pids):
        path = pathlib.Path(request.node.config["file"])
        path.with_suffix(".part").write_text(" ".join(map(str, pids)))
        path.with_suffix(".part").rename(path)

    def family(request, channel):
        child = subprocess.Popen(["sleep", "1000"])
        say(request, [os.getpid(), child.pid])
        threading.Event().wait()

    def stubborn(request, channel):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        say(request, [os.getpid()])
        while True:
            threading.Event().wait()

    def obedient(request, channel):
        say(request, [os.getpid()])
        while not pathlib.Path("go").exists():
            time.sleep(0.01)
        return 42
"""


def started(executor, project, operator):
    path = project.root / f"{operator}.pids"
    request = project.request(operator, config={"file": str(path)})
    executor.submit([request])
    wait_until(executor, path.exists)
    return request, [int(pid) for pid in path.read_text().split()]


def halt(executor, number):
    """As another thread does it."""
    halted = []
    thread = threading.Thread(target=lambda: halted.append(executor.halt(number)))
    thread.start()
    thread.join()
    return halted[0]


def test_what_runs_ends_with_its_children_and_is_handed_back(local, project):
    project.write(TASKS)
    executor = local()
    request, pids = started(executor, project, "family")
    assert halt(executor, signal.SIGTERM) == 1
    wait_gone(*pids)
    (result,) = collect(executor, [request])
    assert result.outcome == "stopped"


def test_what_ignores_it_is_killed(local, project):
    project.write(TASKS)
    executor = local()
    request, (pid,) = started(executor, project, "stubborn")
    assert halt(executor, signal.SIGKILL) == 0 and is_running(pid)
    assert halt(executor, signal.SIGTERM) == 1 and is_running(pid)
    assert halt(executor, signal.SIGTERM) == 0
    assert halt(executor, signal.SIGKILL) == 1
    wait_gone(pid)
    (result,) = collect(executor, [request])
    assert result.outcome == "stopped"
    assert halt(executor, signal.SIGTERM) == 0


def test_what_was_done_by_then_stays_done(local, project):
    """Its result waits to be heard."""
    project.write(TASKS)
    executor = local()
    started(executor, project, "stubborn")
    request, (pid,) = started(executor, project, "obedient")
    (project.root / "go").touch()
    wait_gone(pid)
    halt(executor, signal.SIGTERM)
    (result,) = collect(executor, [request])
    assert (result.outcome, value_of(result)) == ("success", 42)


def test_a_process_that_only_has_the_number_of_one_is_left_alone(local, project):
    """The try's process is gone and its number given to a stranger, which nobody has heard of here yet."""
    project.write(TASKS)
    executor = local()
    request, (pid, _) = started(executor, project, "family")
    (zygote,) = executor._fleet._zygotes.values()
    worker = zygote.children.pop(pid)
    zygote.children[os.getpid()] = worker
    assert halt(executor, signal.SIGTERM) == 0
    zygote.children[pid] = zygote.children.pop(os.getpid())
    assert halt(executor, signal.SIGTERM) == 1
    assert collect(executor, [request])
