"""How the local executor uses processes: fresh ones, warm ones, used ones, and files that do not load."""

from __future__ import annotations

import os
import signal
import time

import msgspec
import psutil
import pytest
from toy_project import LONG_SECONDS, collect, run_all, value_of, wait_gone, wait_until

from headrace.handoff import Answer

IDENTITY = """
    import os

    LOADED_IN = os.getpid()
    count = 0

    def who(request, channel):
        global count
        count += 1
        return [LOADED_IN, os.getpid(), count]

    def broken(request, channel): raise ValueError("no")

    def hungry(request, channel):
        global kept
        kept = bytearray(b"x" * 50_000_000)
        return [os.getpid()]
"""


def test_each_try_has_a_process_of_its_own_and_the_file_is_loaded_once(local, project):
    project.write(IDENTITY)
    values = [value_of(result) for result in run_all(local(), *[project.request("who") for _ in range(6)])]
    assert len({loaded for loaded, _, _ in values}) == 1
    assert len({pid for _, pid, _ in values}) == 6
    assert {count for _, _, count in values} == {1}


def test_a_new_revision_is_loaded_anew(local, project):
    executor = local()
    project.write("def say(request, channel): return 'old'")
    (old,) = run_all(executor, project.request("say"))
    project.write("def say(request, channel): return 'new'")
    (new,) = run_all(executor, project.request("say"))
    assert (value_of(old), value_of(new)) == ("old", "new")


def chain(executor, project, count, operator="who"):
    return [value_of(run_all(executor, project.request(operator, isolation="reuse"))[0]) for _ in range(count)]


def test_with_reuse_one_process_serves_many_tries(local, project):
    project.write(IDENTITY)
    values = chain(local(), project, 5)
    assert len({pid for _, pid, _ in values}) == 1
    assert [count for _, _, count in values] == [1, 2, 3, 4, 5]


def test_a_reused_process_is_replaced_after_its_number_of_tries(local, project):
    project.write(IDENTITY)
    values = chain(local(tries_per_process=2), project, 6)
    assert [count for _, _, count in values] == [1, 2, 1, 2, 1, 2]
    wait_gone(values[0][1])


def test_a_reused_process_is_replaced_after_a_failure(local, project):
    project.write(IDENTITY)
    executor = local()
    ((_, first, _),) = chain(executor, project, 1)
    run_all(executor, project.request("broken", isolation="reuse"))
    ((_, second, count),) = chain(executor, project, 1)
    assert first != second
    assert count == 1
    wait_gone(first)


def test_a_reused_process_is_replaced_when_it_has_grown(local, project):
    project.write(IDENTITY)
    executor = local(growth_limit_bytes=20_000_000)
    chain(executor, project, 1)
    ((pid,),) = chain(executor, project, 1, "hungry")
    values = chain(executor, project, 10)
    assert values[-1][1] != pid
    wait_gone(pid)


def test_a_fresh_try_never_gets_a_used_process(local, project):
    project.write(IDENTITY)
    executor = local()
    ((_, used, _),) = chain(executor, project, 1)
    (fresh,) = run_all(executor, project.request("who"))
    assert value_of(fresh)[1] != used


def test_the_log_of_a_reused_process_is_cut_at_each_try(local, project):
    project.write("def talk(request, channel): print(request.task_id)")
    executor = local()
    requests = [project.request("talk", isolation="reuse") for _ in range(3)]
    for request in requests:
        run_all(executor, request)
    assert [project.log(request) for request in requests] == [f"{request.task_id}\n" for request in requests]


def test_children_are_forked_before_they_are_needed(local, project):
    project.write(IDENTITY)
    executor = local()
    for _ in range(5):
        ((loaded, _, _),) = [value_of(result) for result in run_all(executor, project.request("who"))]
    zygote = psutil.Process(loaded)
    wait_until(executor, lambda: len(zygote.children()) >= 4)
    spares = {child.pid for child in zygote.children()}
    (result,) = run_all(executor, project.request("who"))
    assert value_of(result)[1] in spares


def test_idle_children_leave_first_and_the_warm_parent_later(local, project):
    project.write(IDENTITY)
    executor = local(spare_idle_seconds=0.02, zygote_idle_seconds=0.2)
    ((loaded, _, _),) = chain(executor, project, 1)
    zygote = psutil.Process(loaded)
    wait_until(executor, lambda: not zygote.children())
    assert zygote.is_running()
    wait_until(executor, lambda: not zygote.is_running())
    assert len(chain(executor, project, 1)) == 1


def test_the_warm_parent_that_was_idle_longest_makes_room(local, project):
    executor = local(max_zygotes=2)
    pids = []
    for name in ("a.toy", "b.toy", "c.toy"):
        (project.root / name).write_text("import os\ndef who(request, channel): return os.getppid()")
        (result,) = run_all(executor, project.request("who", file=name))
        pids.append(value_of(result))
    wait_gone(pids[0])
    assert all(psutil.pid_exists(pid) for pid in pids[1:])


def test_more_requests_than_slots_wait_for_their_turn(local, project):
    project.write("import os\ndef who(request, channel): return os.getpid()")
    executor = local(slots=2)
    requests = [project.request("who") for _ in range(9)]
    executor.submit(requests)
    assert executor.free_slots() == 0
    assert len({value_of(result) for result in collect(executor, requests)}) == 9
    assert executor.free_slots() == 2


def test_what_is_cancelled_while_it_waits_for_a_slot_has_never_begun(local, project):
    project.write("def nothing(request, channel): pass")
    executor = local(slots=1)
    first, second = project.request("nothing"), project.request("nothing")
    executor.submit([first, second])
    assert executor.waiting() == [(second.task_id, second.fence)]
    executor.cancel(second.task_id, second.fence)
    results = {result.task_id: result for result in collect(executor, [first, second])}
    assert results[first.task_id].has_begun and results[first.task_id].outcome == "success"
    assert not results[second.task_id].has_begun and results[second.task_id].outcome == "stopped"
    assert executor.waiting() == []


def test_many_tries_run_at_the_same_time(local, project):
    arrived = set()

    def broker(request, ask):
        arrived.add(request.task_id)
        return Answer(id=ask.id, value=msgspec.Raw(str(len(arrived)).encode()))

    project.write(
        """
        import os
        def meet(request, channel):
            "holds its process until all forty are there"
            while channel.ask("get_value", task="x") < 40:
                os.sched_yield()
        """
    )
    results = run_all(local(broker=broker, slots=40), *[project.request("meet") for _ in range(40)])
    assert {result.outcome for result in results} == {"success"}


@pytest.mark.parametrize("where", ["request", "question", "answer", "result"])
def test_big_messages_pass(local, project, where):
    big = "x" * 20_000_000

    def broker(request, ask):
        value = big if where == "answer" else "small"
        return Answer(id=ask.id, value=msgspec.Raw(msgspec.json.encode(value)))

    project.write(
        """
        def echo(request, channel):
            if request.params.get("where") == "question":
                channel.ask("set_value", name="it", value="x" * 20_000_000)
            answer = channel.ask("get_value", task="x")
            size = len(answer) + len(request.params.get("big", ""))
            return "x" * 20_000_000 if request.params.get("where") == "result" else [size]
        """
    )
    params = {"where": where} | ({"big": big} if where == "request" else {})
    (result,) = run_all(local(broker=broker), project.request("echo", params=params))
    expected = {"request": [20_000_005], "question": [5], "answer": [20_000_000], "result": big}
    assert value_of(result) == expected[where]


def test_a_result_over_the_limit_fails_clearly(local, project):
    project.write("def huge(request, channel): return 'x' * 2_000_000")
    (result,) = run_all(local(limit_bytes=1_000_000), project.request("huge"))
    assert result.outcome == "failed" and result.error is not None
    assert result.error.message.startswith("task `huge` gave a result of 2000")
    assert "the limit is 1000000" in result.error.message


def test_a_process_that_floods_its_line_is_stopped(local, project):
    project.write(
        """
        import os, struct
        def flood(request, channel):
            sock = channel._line._socket
            sock.sendall(struct.pack(">I", 2**31))
            while True:
                sock.sendall(b"x" * 65536)
        """
    )
    (result,) = run_all(local(limit_bytes=1_000_000), project.request("flood"))
    assert result.error is not None
    assert result.error.message == "task `flood` (try 1) sent a message of more than 1000000 bytes"


def test_only_the_tasks_own_process_may_ask(local, project):
    project.write(
        """
        import os
        def ask_from_fork(request, channel):
            read, write = os.pipe()
            if os.fork() == 0:
                try:
                    channel.ask("get_value", task="x")
                except Exception as error:
                    os.write(write, str(error).encode())
                os._exit(0)
            return os.read(read, 1000).decode()
        """
    )
    (result,) = run_all(local(), project.request("ask_from_fork"))
    assert "only the task's own process may ask" in value_of(result)


def test_a_dead_spare_is_not_used(local, project):
    project.write(IDENTITY)
    executor = local()
    ((loaded, _, _),) = [value_of(result) for result in run_all(executor, project.request("who"))]
    wait_until(executor, lambda: bool(psutil.Process(loaded).children()))
    dead = [child.pid for child in psutil.Process(loaded).children()]
    for pid in dead:
        os.kill(pid, signal.SIGKILL)
    wait_gone(*dead)
    (result,) = run_all(executor, project.request("who"))
    assert value_of(result)[1] not in dead


def test_a_result_counts_even_if_its_process_is_known_to_be_gone(local, project):
    project.write("import os\ndef big(request, channel): return [os.getppid(), 'x' * 150_000]")
    executor = local()
    (first,) = run_all(executor, project.request("big"))
    zygote = psutil.Process(value_of(first)[0])
    wait_until(executor, lambda: bool(zygote.children()))
    executor.poll(0.05)
    spares = [child.pid for child in zygote.children()]
    request = project.request("big")
    executor.submit([request])
    until = time.monotonic() + LONG_SECONDS
    while all(map(psutil.pid_exists, spares)):
        assert time.monotonic() < until
    (result,) = collect(executor, [request])
    assert result.outcome == "success"


LOAD_FAILURES = {
    "exception": ("print('on my way')\n1 / 0", "could not load `flow.toy`: ZeroDivisionError: division by zero"),
    "syntax": ("def (", "could not load `flow.toy`: SyntaxError: invalid syntax (flow.toy, line 1)"),
    "exit": ("import sys; sys.exit(4)", "could not load `flow.toy`: it called sys.exit(4)"),
    "hard exit": (
        "import os; os._exit(5)",
        "could not load `flow.toy`: the process left with exit code 5 while loading it",
    ),
    "segfault": (
        "import ctypes; ctypes.string_at(0)",
        "could not load `flow.toy`: the process was killed by signal 11 (Segmentation fault) while loading it",
    ),
    "hang": ("import threading; threading.Event().wait()", "could not load `flow.toy`: it took longer than 1 s"),
}


@pytest.mark.parametrize("kind", LOAD_FAILURES)
def test_a_file_that_does_not_load_fails_every_try_that_waits_for_it(local, project, kind):
    text, message = LOAD_FAILURES[kind]
    project.write(text)
    executor = local(load_timeout_seconds=1.0 if kind == "hang" else 30.0)
    results = run_all(executor, project.request("any"), project.request("any"))
    for result in results:
        assert result.outcome == "failed" and result.error is not None
        assert (result.error.type, result.error.message.replace(f"{project.root}/", "")) == ("LoadError", message)


def test_a_load_failure_shows_the_users_traceback_and_output(local, project):
    project.write("print('on my way')\n1 / 0")
    (result,) = run_all(local(), project.request("any"))
    assert result.error is not None
    assert "flow.toy" in result.error.traceback
    assert "output while loading:\non my way" in result.error.traceback
    assert "headrace" not in result.error.traceback.replace(str(project.root), "")


def test_output_while_loading_is_bounded(local, project):
    project.write("print('x' * 5_000_000)\nprint('the end')\n1 / 0")
    (result,) = run_all(local(), project.request("any"))
    assert result.error is not None
    assert result.error.traceback.rstrip().endswith("the end")
    assert len(result.error.traceback) < 40_000


def test_a_missing_folder_is_a_load_failure(local, project):
    (result,) = run_all(local(), project.request("any", file="missing.toy"))
    assert result.error is not None
    assert result.error.message.startswith("could not load `missing.toy`: FileNotFoundError")


def test_a_missing_interpreter_fails_the_try(local, project):
    (result,) = run_all(local(python="/nowhere/python"), project.request("any"))
    assert result.outcome == "failed" and result.error is not None
    assert "did not start" in result.error.message


def test_a_file_can_be_loaded_ahead(local, project):
    project.write(IDENTITY)
    executor = local()
    executor.prepare(project.request("who").source)
    (result,) = run_all(executor, project.request("who"))
    assert result.outcome == "success"


def test_a_task_can_spawn_processes_of_its_own(local, project):
    project.write(
        """
        import math
        def roots(request, channel):
            import multiprocessing
            with multiprocessing.get_context("spawn").Pool(1) as pool:
                return pool.map(math.sqrt, [1, 4])
        """
    )
    (result,) = run_all(local(), project.request("roots"))
    assert value_of(result) == [1, 2]


def test_sigterm_ends_what_a_task_forked_as_usual(local, project):
    project.write(
        """
        def ends_it(request, channel):
            import multiprocessing, time
            context = multiprocessing.get_context("fork")
            ready = context.Event()
            def work():
                try:
                    ready.set()
                    time.sleep(60)
                finally:
                    print("cleaned up")
            process = context.Process(target=work)
            process.start()
            ready.wait(20)
            process.terminate()
            process.join(20)
            with context.Pool(2) as pool:
                pool.map(abs, [1, 2])
            return process.exitcode
        def own_handler(request, channel):
            import os, signal
            signal.signal(signal.SIGTERM, lambda *_: os._exit(7))
            pid = os.fork()
            if pid == 0:
                os.kill(os.getpid(), signal.SIGTERM)
                os._exit(1)
            return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        """
    )
    executor, request = local(), project.request("ends_it")
    (result,) = run_all(executor, request)
    assert value_of(result) == -signal.SIGTERM
    assert not project.has_log(request) or project.log(request) == ""
    (result,) = run_all(executor, project.request("own_handler"))
    assert value_of(result) == 7
