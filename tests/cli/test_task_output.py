"""What tasks print is on the standard output of `headrace run`, and nothing else is."""

from __future__ import annotations

import sys

from headrace.cli.task_output import TaskOutput

LINE = b"2026-02-03T04:05:06.789Z INFO headrace.runner.dig_task: sh>: `x`\n"


def test_whole_lines_of_tasks_go_on_and_those_of_the_engine_do_not(capfdbinary):
    output = TaskOutput()
    output("a", LINE + b"one\ntw")
    output("b", b"2026-02-03T04:05:06.789Z INFO mine: mine\n")
    output.show_by(None)
    output("b", b"other, unfinished")
    output("a", b"o\n")
    output("b", b"")
    output("a", b"")
    expected = b"one\n2026-02-03T04:05:06.789Z INFO mine: mine\ntwo\nother, unfinished\n"
    assert capfdbinary.readouterr().out == expected


def test_a_line_without_end_is_shown_in_pieces(capfdbinary):
    output = TaskOutput()
    output.show_by(None)
    for _ in range(3):
        output("a", b"x" * 50_000)
    assert capfdbinary.readouterr().out == b"x" * 100_000
    output("a", b"")
    assert capfdbinary.readouterr().out == b"x" * 50_000 + b"\n"


def test_lines_go_above_a_live_picture():
    said: list[str] = []
    output = TaskOutput()
    output("a", b"before\n")
    output.show_by(said.append)
    output("a", b"\xff\nafter\n")
    assert said == ["before", "\ufffd\nafter"]


def test_nobody_has_to_read_it(monkeypatch):
    output = TaskOutput()
    monkeypatch.setattr(sys, "stdout", None)
    output.show_by(None)
    output("a", b"x\n")


def test_both_families_print(headrace):
    dig = headrace.write("a.dig", "+a:\n  sh>: |\n    echo one\n    echo two >&2\n+b: {echo>: 'three ${k.d}'}\n")
    done = headrace("run", dig, "-p", "k.d=4")
    assert (done.returncode, done.out) == (0, "one\ntwo\nthree 4\n"), done.err
    dag = headrace.dag("@task\ndef t():\n    print('of a DAG')\nt()\n")
    done = headrace("run", dag)
    assert done.returncode == 0 and "of a DAG" in done.out


def test_output_that_nobody_reads_does_not_stop_the_run(headrace):
    file = headrace.write("b.dig", "+a: {sh>: 'for i in 1 2 3; do echo $i; sleep 0.1; done; touch ../ended'}\n")
    with headrace.start("run", file) as process:
        process.stdout.close()
        process.stderr.read()
    assert process.returncode == 0
    assert (headrace.folder / "ended").exists()


FAILED = b"2026-02-03T04:05:06.789Z ERROR headrace.task: failed\n"


def test_why_a_try_failed_is_not_what_it_printed(capfdbinary):
    output = TaskOutput()
    output.show_by(None)
    output("a", b"printed\nunfinished" + FAILED + b"Traceback (most recent call last):\n")
    output("a", b"ValueError: boom\n")
    output("b", b"of another task\n")
    output("a", b"")
    output("a", b"of another try\n")
    assert capfdbinary.readouterr().out == b"printed\nunfinished\nof another task\nof another try\n"


def test_a_failure_is_told_once_and_on_standard_error(headrace):
    dig = headrace.write("a.dig", "+a:\n  sh>: echo one; printf two; exit 3\n")
    done = headrace("run", dig)
    assert (done.returncode, done.out) == (1, "one\ntwo\n"), done.err
    assert done.err.count("Command failed with code 3") == 1
    assert "CommandFailed: Command failed with code 3" in headrace("logs", "latest", "+a+a").out
    dag = headrace.dag("@task\ndef t():\n    print('said')\n    raise ValueError('boom')\nt()\n")
    done = headrace("run", dag)
    assert (done.returncode, done.out) == (1, "said\n"), done.err
    assert done.err.count("Traceback (most recent call last)") == 1
    assert "  |     raise ValueError('boom')" in done.err


def test_what_is_tried_again_says_why(headrace):
    dag = headrace.dag(
        "@task(retries=1, retry_delay=0.7)\ndef t(ti=None):\n    assert ti.try_number > 1, 'boom'\nt()\n"
    )
    done = headrace("run", dag)
    assert done.returncode == 0, done.err
    assert any("up_for_retry" in line and "AssertionError: boom" in line for line in done.err.splitlines()), done.err
