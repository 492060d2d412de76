"""Whatever is wrong, the answer is a sentence and an exit code, never our traceback."""

from __future__ import annotations

import contextlib
import os
import signal
import sqlite3

import pytest

from headrace.processes import is_alive

HELLO = "@task\ndef hello():\n    pass\n\nhello()"


def refused(done, *texts, code=2):
    assert done.returncode == code, done.err
    assert done.err.startswith("error: ") or "\nerror: " in done.err or code == 1
    assert "headrace/cli" not in done.err and "headrace/actions" not in done.err
    for text in texts:
        assert text in done.err
    return done


def test_a_file_that_is_not_there_suggests_the_nearest(headrace):
    headrace.dag(HELLO, "sales")
    refused(headrace("run", str(headrace.folder / "flows" / "sale.py")), "does not exist", "did you mean `sales.py`?")


def test_a_file_that_is_no_workflow(headrace):
    refused(headrace("run", headrace.write("notes.txt", "hello")), "is not a workflow file")
    refused(headrace("run", headrace.write("empty.py", "x = 1")), "`empty.py` defines no workflow")
    refused(
        headrace("run", headrace.write("almost.py", "from airflow.sdk import dag\n@dag\ndef x(): ...")),
        "`almost.py` has no DAG",
    )


def test_an_import_error_shows_its_line(headrace):
    refused(headrace("run", headrace.write("flow.py", "import os\nimport nothing_like_this")), "flow.py:2")


def test_a_file_that_exits(headrace):
    refused(headrace("run", headrace.write("flow.py", "import sys\nsys.exit(3)")), "sys.exit(3)")


def test_a_file_that_never_ends(headrace):
    file = headrace.write("flow.py", "while True:\n    pass")
    refused(headrace("run", file, HEADRACE_PARSER__TIMEOUT_SECONDS="0.5"), "took longer than 0.5 s", "flow.py:")


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("-p", "oops"), "KEY=VALUE"),
        (("--logical-date", "2026-13-01"), "expected a date"),
        (("--slot", "2"), "did you mean `--slots`?"),
        (("--slots", "none"), "--slots"),
    ],
)
def test_an_option_that_makes_no_sense(headrace, arguments, text):
    refused(headrace("run", headrace.dag(HELLO), *arguments), text)


def test_an_unknown_command_and_an_unknown_setting(headrace):
    refused(headrace("rnus"), "did you mean `runs`?")
    refused(headrace("runs", HEADRACE_AGENT__SLOT="1"), "HEADRACE_AGENT__SLOTS")


@pytest.mark.parametrize("group", [(), ("db",), ("backfill",)])
def test_a_group_without_a_command_prints_its_help_as_it_is(headrace, group):
    bare, asked = headrace.process(*group), headrace.process(*group, "--help")
    assert (bare.out + bare.err).strip() == asked.out.strip()


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("pools", "set", "p", "abc"), "`abc` is not a whole number (at least -1)"),
        (("runs", "--limit", "1.5"), "`1.5` is not a whole number (from 1 to 10000)"),
        (("agent", "--drain-seconds", "soon"), "`soon` is not a number (at least 0)"),
    ],
)
def test_a_text_where_a_number_is_expected(headrace, arguments, text):
    refused(headrace(*arguments), text)


def test_a_database_that_cannot_be_reached(headrace):
    refused(headrace("runs", "--store", "postgresql://nobody@127.0.0.1:1/none"), "could not reach the database")


@pytest.mark.parametrize(("version", "text"), [("0000", "is at schema 0000"), ("9999", "newer Headrace")])
def test_a_schema_of_another_version(headrace, version, text):
    path = headrace.folder / "old.db"
    assert headrace("db", "upgrade", "--store", str(path)).returncode == 0
    with sqlite3.connect(path) as database:
        database.execute("UPDATE schema_version SET version_num = ?", (version,))
    database.close()
    refused(headrace("runs", "--store", str(path)), text)


def test_an_unknown_run_and_workflow(headrace):
    assert headrace("db", "upgrade").returncode == 0
    refused(headrace("tasks", "17"), "there is no run 17")
    refused(headrace("trigger", "nothing"), "there is no workflow `nothing`")
    refused(headrace("why", "latest"), "there is no run yet")


def test_a_store_without_any_workflow_says_what_brings_one(headrace):
    assert headrace("db", "upgrade").returncode == 0
    refused(
        headrace("trigger", "nothing"),
        "`headrace standalone FOLDER`", "`headrace scheduler --projects NAME=PATH`", "`headrace push PROJECT`",
    )  # fmt: skip


def test_a_result_that_is_not_json(headrace):
    done = headrace("run", headrace.dag("@task\ndef bad():\n    return object()\n\nbad()"))
    assert done.returncode == 1
    assert "`bad` failed" in done.err and "JSON" in done.err


def test_a_log_line_of_a_hundred_megabytes(headrace):
    file = headrace.dag(
        "@task\ndef loud():\n    for _ in range(100):\n        sys.stdout.write('x' * 1_000_000)\n"
        "    raise ValueError('enough')\n\nloud()"
    )
    done = headrace("run", file)
    assert done.returncode == 1
    assert len(done.err) < 20_000


def test_a_task_whose_children_ignore_sigterm_is_gone_after_the_run(headrace):
    pipe = headrace.folder / "pids"
    os.mkfifo(pipe)
    file = headrace.dag(
        f"""
        @task
        def stubborn():
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            os.fork() and os.fork()
            with open({str(pipe)!r}, "a") as file:
                file.write(f"{{os.getpid()}}\\n")
            while True:
                time.sleep(60)

        stubborn()
        """
    )
    process = headrace.start("run", file, HEADRACE_AGENT__KILL_GRACE_SECONDS="0.2")
    pids = []
    while len(pids) < 3:
        with open(pipe) as lines:
            pids += lines.read().split()
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=30)
    assert process.returncode == 130
    # Killed ones may still wait for somebody to take note of their end.
    assert [pid for pid in pids if is_alive(int(pid))] == []


def test_logs_that_cannot_be_written_do_not_stop_the_task(headrace):
    blocked = headrace.folder / "blocked"
    blocked.write_text("a file where the folder for logs should be")
    done = headrace(
        "run", headrace.dag("@task\ndef hello():\n    print('hi')\n\nhello()"), HEADRACE_LOGS_DIR=str(blocked)
    )
    assert done.returncode == 0, done.err


def test_a_mistake_of_ours_leaves_a_report_and_no_traceback(headrace):
    headrace.home.mkdir()
    (headrace.home / "headrace.db").mkdir()
    (headrace.folder / "sitecustomize.py").write_text(
        "import headrace.settings as s\ndef broken(*a, **k):\n    raise ZeroDivisionError\ns.load_settings = broken\n"
    )
    path = os.pathsep.join((str(headrace.folder), os.environ.get("PYTHONPATH", "")))
    done = refused(headrace.process("runs", PYTHONPATH=path), "ZeroDivisionError", code=70)
    assert "Traceback" not in done.err
    (report,) = (headrace.home / "crashes").iterdir()
    assert "ZeroDivisionError" in report.read_text()


def test_folder_to_push_that_does_not_exist_names_the_nearest_one(headrace):
    (headrace.folder / "reports").mkdir()
    folder = str(headrace.folder / "report")
    refused(headrace("push", "demo", "--project", folder), "does not exist", "did you mean `reports`?")


def test_help_is_offered_for_the_command_as_it_was_typed(headrace):
    refused(headrace("backfill", "demo", "daily"), "missing option `-f` / `--from`", "`headrace backfill --help`")


def test_a_database_of_an_unreleased_version_is_told_in_a_sentence(headrace, tmp_path):
    store = f"sqlite:///{tmp_path}/old.db"
    assert headrace("db", "upgrade", "--store", store).returncode == 0
    alter(tmp_path / "old.db", "run RENAME COLUMN note TO remark")
    for command in (["run", headrace.dag(HELLO)], ["db", "check"], ["db", "upgrade"]):
        refused(headrace(*command, "--store", store), "its table `run` has no column `note`", "hint: no upgrade leads")
    assert not (headrace.home / "crashes").exists()


def test_a_database_that_turns_out_to_be_another_one_ends_what_runs(headrace, tmp_path):
    store = f"sqlite:///{tmp_path}/old.db"
    agent = headrace.start("agent", "--store", store)
    assert "an agent serves" in agent.stderr.readline()
    alter(tmp_path / "old.db", "try RENAME COLUMN log TO file", "errand RENAME COLUMN queue TO line")
    done = headrace("run", headrace.dag(HELLO), "--store", store)
    refused(done, "has no column")
    told = agent.communicate(timeout=60)[1]
    assert (agent.returncode, "Traceback" in told) == (2, False)
    assert "the agent cannot go on, and its process ends: the database" in told


def test_a_table_that_would_only_be_used_later_is_told_of_when_a_process_starts_to_serve(headrace, tmp_path):
    store = f"sqlite:///{tmp_path}/old.db"
    assert headrace("db", "upgrade", "--store", store).returncode == 0
    alter(tmp_path / "old.db", "trigger RENAME COLUMN arguments TO words")
    headrace.dag(HELLO)
    for command in (["standalone", "flows"], ["triggerer"]):
        done = refused(headrace(*command, "--store", store), "its table `trigger` has no column `arguments`")
        assert "Ctrl-C" not in done.err


def alter(path, *changes):
    with contextlib.closing(sqlite3.connect(path)) as database:
        for change in changes:
            database.execute(f"ALTER TABLE {change}")


@pytest.mark.parametrize("command", ["standalone", "scheduler"])
def test_two_folders_of_one_name_are_refused(headrace, command):
    folders = [headrace.folder / parent / "flows" for parent in ("one", "two")]
    for folder in folders:
        folder.mkdir(parents=True)
    given = [text for folder in folders for text in ("--projects", str(folder))]
    refused(headrace(command, *given), "two folders are called project `flows`", "NAME=PATH")
