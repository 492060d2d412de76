"""Output of real task processes on its way to the log file."""

from __future__ import annotations

import logging
import resource
import stat
from pathlib import Path

from toy_project import collect, run_all, value_of, wait_until


def test_a_line_of_100_mb_is_logged_in_little_memory(local, project):
    project.write(
        """
        import os
        def shout(request, channel):
            chunk = b"x" * 1_000_000
            for _ in range(100):
                left = memoryview(chunk)
                while left:
                    left = left[os.write(1, left):]
        """
    )
    executor = local()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    request = project.request("shout")
    (result,) = run_all(executor, request)
    grown_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert result.outcome == "success"
    assert Path(request.log_path).stat().st_size == 100_000_000
    assert grown_kb < 20_000


def test_everything_written_before_the_result_is_in_the_log(local, project):
    project.write(
        """
        def talk(request, channel):
            for number in range(2000):
                print(number)
        """
    )
    executor = local()
    requests = [project.request("talk") for _ in range(4)]
    for request, _ in zip(requests, run_all(executor, *requests), strict=True):
        assert project.log(request).splitlines() == [str(number) for number in range(2000)]


def test_output_is_in_the_log_while_the_task_runs(local, project):
    project.write(
        """
        import threading
        def talk(request, channel):
            print("first")
            threading.Event().wait()
        """
    )
    executor = local()
    request = project.request("talk")
    executor.submit([request])
    path = Path(request.log_path)
    wait_until(executor, lambda: path.exists() and path.read_text() == "first\n")
    executor.cancel(request.task_id, request.fence)
    collect(executor, [request])


def test_the_output_of_a_killed_process_is_kept(local, project):
    project.write("import os\ndef die(request, channel): print('last words'); os._exit(1)")
    request = project.request("die")
    run_all(local(), request)
    first, reason = project.log(request).splitlines()
    assert first == "last words" and "left with exit code 1" in reason


def test_programs_that_the_task_starts_write_to_its_log(local, project):
    project.write("import subprocess\ndef shell(request, channel): subprocess.run(['echo', 'from a program'])")
    request = project.request("shell")
    run_all(local(), request)
    assert project.log(request) == "from a program\n"


def test_log_lines_have_time_level_and_name(local, project):
    project.write("import logging\ndef talk(request, channel): logging.getLogger('airflow.task').warning('careful')")
    request = project.request("talk")
    run_all(local(), request)
    line = project.log(request)
    assert line.endswith("Z WARNING airflow.task: careful\n")
    assert len(line.split()[0]) == len("2026-02-03T04:05:06.789Z")


def test_a_log_that_cannot_be_written_does_not_disturb_the_task(local, project, caplog):
    project.write("def talk(request, channel): print('x' * 1_000_000); return 'done'")
    request = project.request("talk", log_path="/dev/full")
    with caplog.at_level(logging.WARNING, "headrace.logs"):
        (result,) = run_all(local(), request)
    assert value_of(result) == "done"
    assert [record.getMessage() for record in caplog.records] == [
        "could not write the log `/dev/full`: No space left on device; the task goes on without it"
    ]


def test_a_task_without_a_log_path_runs_all_the_same(local, project):
    project.write("def talk(request, channel): print('x' * 1_000_000); return 'done'")
    (result,) = run_all(local(), project.request("talk", log_path=""))
    assert value_of(result) == "done"


def test_logs_are_not_for_everybody(local, project):
    project.write("def talk(request, channel): print('hello')")
    folder = project.root / "private" / "inner"
    request = project.request("talk", log_path=str(folder / "1.log"))
    run_all(local(), request)
    modes = [stat.S_IMODE(path.stat().st_mode) for path in (folder / "1.log", folder, folder.parent)]
    assert [mode & 0o027 for mode in modes] == [0, 0, 0]


def test_two_calls_of_one_try_share_a_log(local, project):
    project.write("def talk(request, channel): print('poke')")
    executor = local()
    first = project.request("talk")
    second = project.request("talk", log_path=first.log_path)
    run_all(executor, first)
    run_all(executor, second)
    assert project.log(first) == "poke\npoke\n"
