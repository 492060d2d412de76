"""`alias digdag=headrace`: what scripts for Digdag call, in real processes."""

from __future__ import annotations

import json
import re

import pytest

from headrace.cli.main import run_command
from headrace.cli.parsing import Parsing
from headrace.settings import ParserSettings

FLOW = """\
+one:
  echo>: ${greeting} ${session_date}
+two:
  sh>: test -f OK
"""


def flow(headrace, name="main"):
    path = headrace.write(f"{name}.dig", FLOW.replace("OK", str(headrace.folder / "ok")))
    return path


def test_local_session_goes_on_and_shows_what_it_skips(headrace):
    path = flow(headrace)
    first = headrace("run", path, "--session", "2026-01-31", "-p", "greeting=hi")
    assert first.returncode == 1
    (headrace.folder / "ok").touch()
    second = headrace("run", path, "-t", "2026-01-31", "-p", "greeting=hi", "-E", "-c", "/dev/null", "-X", "params.x=1")
    assert second.returncode == 0, second.err
    assert "attempt 2 of the session for 2026-01-31 00:00:00 +0000; 1 task was done before" in second.err
    logs = headrace("log", "1")
    assert "--- +main+two, try 1" in logs.out and "+one" not in logs.out
    assert '"x": "1"' in logs.out, "`-E` shows the parameters, and `-X` gives some"
    assert headrace("log", "1.1", "+main+one").out.count("hi 2026-01-31") >= 1


def test_retry_of_a_local_run_runs_it(headrace):
    path = flow(headrace)
    assert headrace("run", path, "-p", "greeting=hi").returncode == 1
    assert headrace("retry", "latest").returncode == 1, "the file is not there yet"
    (headrace.folder / "ok").touch()
    done, code = headrace.json("retry", "latest")
    assert code == 0
    assert {name: task["state"] for name, task in done["tasks"].items()}["+main+two"] == "success"
    assert headrace("clear", "latest", "+two").returncode == 0


def in_process(monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("HEADRACE_HOME", str(tmp_path / "home"))

    def call(*arguments):
        code = run_command(arguments)
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call


@pytest.fixture
def digdag(monkeypatch, tmp_path, capsys):
    """The command in this process: nothing of these commands runs code of tasks."""
    return in_process(monkeypatch, tmp_path, capsys)


@pytest.fixture
def project(tmp_path):
    folder = tmp_path / "sales"
    folder.mkdir()
    (folder / "daily.dig").write_text("timezone: Asia/Tokyo\nschedule:\n  daily>: 07:00:00\n+a:\n  echo>: 1\n")
    return folder


def fields(text):
    """What a block says, by key."""
    return dict(re.findall(r"^ +([a-z ]+): ?(.*)$", text, re.MULTILINE))


def test_project_from_push_to_delete(digdag, project, tmp_path):
    code, out, _ = digdag("push", "sales", "--project", str(project), "-r", "1.0.0", "-e", "http://x", "-l", "error")
    assert code == 0 and out.startswith("Uploaded:\n")
    assert fields(out)["revision"] == "1.0.0"
    code, out, _ = digdag("start", "sales", "daily", "--session", "2026-01-31", "-p", "n=5", "--dry-run")
    assert code == 0 and fields(out)["status"] == "running"
    code, out, _ = digdag("start", "sales", "daily", "--session", "2026-01-31", "-p", "n=5")
    started = fields(out)
    assert out.startswith("Started a session attempt:\n")
    assert started["session time"] == "2026-01-31 00:00:00 +0900"
    assert (started["params"], started["revision"]) == ('{"n": "5"}', "1.0.0")
    code, _, err = digdag("start", "sales", "daily", "--session", "2026-01-31")
    assert code == 1 and "was already started for this time" in err
    attempt = started["attempt id"]
    assert fields(digdag("attempt", attempt)[1])["status"] == "running"
    assert digdag("kill", attempt)[0] == 0
    assert fields(digdag("attempts", started["session id"])[1])["status"] == "killed"
    assert fields(digdag("session", started["session id"])[1])["attempt id"] == attempt
    assert "+daily+a" in digdag("task", attempt)[1]
    retried = digdag("retry", attempt, "--latest-revision", "--resume", "--name", "again")[1]
    assert retried.startswith("Started a session attempt:\n")
    assert fields(retried)["attempt id"] == f"{started['session id']}.2"
    assert fields(retried)["retry attempt name"] == "again"
    assert digdag("kill", started["session id"])[0] == 0
    retried = digdag("retry", started["session id"])[1]
    assert len(fields(retried)["retry attempt name"]) == 36, "it has a name, too"
    assert digdag("sessions", "sales", "daily")[1].endswith("1 entries.\n")
    assert digdag("workflows", "sales")[1].splitlines()[1].startswith("daily")
    assert '"timezone": "Asia/Tokyo"' in digdag("workflow", "sales", "daily")[1]
    assert digdag("download", "sales", "-o", str(tmp_path / "out"))[0] == 0
    assert (tmp_path / "out" / "daily.dig").read_text() == (project / "daily.dig").read_text()
    assert digdag("delete", "sales", "--force")[0] == 0
    assert digdag("projects")[1] == "Projects:\n0 entries.\n"


def test_sessions_of_a_project_are_not_those_of_a_deleted_one_of_its_name(digdag, project):
    for time in ("2026-01-30", "2026-01-31"):
        digdag("push", "sales", "--project", str(project))
        started = fields(digdag("start", "sales", "daily", "--session", time)[1])
        assert fields(digdag("sessions", "sales")[1])["session id"] == started["session id"]
        assert digdag("sessions", "sales")[1].endswith("1 entries.\n")
        if time == "2026-01-30":
            digdag("delete", "sales", "--force")
            code, _, err = digdag("sessions", "sales")
            assert code == 2 and "there is no project `sales`" in err
    assert digdag("sessions")[1].endswith("2 entries.\n"), "history stays"
    assert digdag("sessions", "sales", "--last-id", started["session id"])[1] == "Sessions:\n0 entries.\n"


def test_workflow_that_the_newest_revision_lacks_keeps_its_sessions(digdag, project):
    (project / "old.dig").write_text("+a:\n  echo>: 1\n")
    digdag("push", "sales", "--project", str(project), "-r", "1")
    session = fields(digdag("start", "sales", "old", "--session", "2026-01-31")[1])["session id"]
    (project / "old.dig").unlink()
    digdag("push", "sales", "--project", str(project), "-r", "2")
    for words in (("sessions", "sales", "old"), ("attempts", "sales/old"), ("attempts", "old")):
        assert fields(digdag(*words)[1])["session id"] == session
    for words in (("tasks", "sales/old"), ("log", "old"), ("sla-misses", "sales/old"), ("kill", "sales/old")):
        assert digdag(*words)[0] == 0
    assert digdag("retry", "sales/old", "--revision", "1")[0] == 0
    code, _, err = digdag("start", "sales", "old", "--session", "2026-02-01")
    assert code == 2 and "project `sales` has no workflow `old` any more" in err
    assert "`headrace sessions sales old` lists its runs" in err
    assert digdag("start", "sales", "old", "--session", "2026-02-01", "--revision", "1")[0] == 0
    assert digdag("sessions", "sales", "old")[1].endswith("2 entries.\n")
    code, _, err = digdag("start", "sales", "old", "--session", "2026-02-02", "--revision", "2")
    assert code == 2 and "revision `2` of project `sales` has no workflow `old`" in err
    assert "has no workflow `odd`" in digdag("sessions", "sales", "odd")[2]


def test_sessions_of_a_workflow_are_not_those_of_a_deleted_project(digdag, project):
    digdag("push", "sales", "--project", str(project))
    session = fields(digdag("start", "sales", "daily", "--session", "2026-01-31")[1])["session id"]
    digdag("delete", "sales", "--force")
    (project / "daily.dig").rename(project / "weekly.dig")
    digdag("push", "sales", "--project", str(project))
    assert "project `sales` has no workflow `daily`" in digdag("sessions", "sales", "daily")[2]
    assert fields(digdag("session", session)[1])["workflow"] == "daily"


def test_workflows_of_a_project_come_in_pages_of_their_own(digdag, project):
    for name in ("first", "second"):
        for file in ("a.dig", "b.dig"):
            (project / file).write_text("+a:\n  echo>: 1\n")
        digdag("push", name, "--project", str(project))
    found = []
    for _ in range(2):
        after = ("--after", str(found[-1]["id"])) if found else ()
        page = json.loads(digdag("workflows", "second", "--limit", "2", "--json", *after)[1])
        found += page["workflows"]
    assert [(one["project"], one["name"]) for one in found] == [("second", n) for n in ("a", "b", "daily")]
    assert page["next"] is None


def test_a_session_has_the_same_uuid_everywhere(digdag, project):
    digdag("push", "sales", "--project", str(project))
    started = fields(digdag("start", "sales", "daily", "--session", "2026-01-31")[1])
    assert re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", started["uuid"])
    shown = [digdag(*command)[1] for command in (("sessions",), ("attempts",), ("attempt", started["attempt id"]))]
    assert [fields(one)["uuid"] for one in shown] == [started["uuid"]] * 3
    listed = json.loads(digdag("runs", "--json")[1])["runs"]
    assert [one["uuid"] for one in listed] == [started["uuid"]]
    digdag("start", "sales", "daily", "--session", "2026-02-01")
    assert len({one["uuid"] for one in json.loads(digdag("runs", "--json")[1])["runs"]}) == 2


def test_check_shows_parameters_and_the_first_session(digdag, project, tmp_path):
    (tmp_path / "more.yml").write_text("m: {a: 1}\nn: 1\n")
    code, out, _ = digdag("check", "--project", str(project), "-p", "n=5", "-P", str(tmp_path / "more.yml"))
    assert code == 0
    assert 'parameters: {"m": {"a": 1}, "n": "5"}' in out
    session, run = re.search(r"first session time: \S+ (\S+ \S+), first run: \S+ (\S+ \S+)", out).groups()
    assert (session, run) == ("00:00:00 +0900", "07:00:00 +0900")


@pytest.mark.parametrize(
    ("command", "advice"),
    [("server", "`headrace standalone`"), ("migrate", "`headrace db upgrade`"), ("selfupdate", "")],
)
def test_commands_that_are_elsewhere_say_where(digdag, command, advice):
    code, _, err = digdag(command, "-m")
    assert (code, err.splitlines()[0]) == (2, f"error: there is no command `{command}`")
    assert advice in err


def test_schedules_of_a_project(digdag, project):
    digdag("push", "sales", "--project", str(project), "--schedule-from", "2026-01-30 00:00:00 +0900")
    row = fields(digdag("schedules")[1])
    assert row["next session time"] == "2026-01-30 00:00:00 +0900"
    assert digdag("disable", "sales", "daily")[1].startswith(f"Disabled schedule id: {row['id']}")
    assert fields(digdag("schedule", row["id"])[1])["disabled at"]
    assert digdag("enable", row["id"])[1].startswith("Enabled schedule id: ")
    moved = digdag("reschedule", "sales", "daily", "-t", "2040-01-01")[1]
    assert fields(moved)["next session time"] == "2040-01-01 00:00:00 +0900"


def test_backfill_runs_the_times_of_a_schedule_one_after_the_other(digdag, project):
    digdag("push", "sales", "--project", str(project))
    code, out, _ = digdag("backfill", "sales", "daily", "--from", "2026-01-01", "--count", "2", "-d")
    assert code == 0 and "a dry run, nothing was done: 2 new" in out
    code, out, _ = digdag("backfill", "sales", "daily", "-f", "2026-01-01", "--count", "2", "--name", "again", "--json")
    done = json.loads(out)
    assert [one["logical_time"] for one in done["times"]] == ["2025-12-31T15:00:00Z", "2026-01-01T15:00:00Z"]
    assert done["backfill"]["max_active_runs"] == 1
    code, _, err = digdag("backfill", "sales", "daily", "-f", "2026-01-01", "--count", "9000")
    assert code == 2 and "has only" in err
    assert "has no workflow `other`" in digdag("backfill", "sales", "other", "-f", "2026-01-01")[2]
    assert "unknown" not in digdag("backfill", "list")[2]


def test_archive_and_upload_are_a_push_in_two_steps(digdag, project, tmp_path):
    archive = tmp_path / "it.tar.gz"
    assert digdag("archive", "--project", str(project), "-o", str(archive))[0] == 0
    code, out, _ = digdag("upload", str(archive), "sales", "-r", "2")
    assert code == 0 and fields(out)["revision"] == "2"


def test_broken_files_are_told_all_at_once(digdag, project):
    (project / "one.dig").write_text("+a:\n  sh>: x\n  sh>: y\n")
    (project / "two.dig").write_text("- a list\n")
    (project / "three.dig").write_text("+a: {ehco>: 1}\n+b: {pyy>: x}\n")
    code, _, err = digdag("push", "sales", "--project", str(project))
    assert code == 2
    assert "3 files of 4 cannot be loaded" in err and "one.dig:3" in err and "two.dig" in err
    assert "unknown operator `ehco>`" in err and "unknown operator `pyy>` (`three.dig:2`)" in err


@pytest.mark.parametrize("kind", ["echo", "sh", "python", "ruby"])
def test_new_projects_load(digdag, tmp_path, kind):
    folder = tmp_path / f"new_{kind}"
    assert digdag("init", str(folder), "-t", kind)[0] == 0
    code, _, err = digdag("init", str(folder), "-t", kind)
    assert code == 2 and "exists already" in err
    assert digdag("push", kind, "--project", str(folder))[0] == 0


def test_a_new_project_can_be_called_like_its_workflow(digdag, tmp_path):
    code, _, err = digdag("init", str(tmp_path / "2026"))
    assert code == 2 and "expected the name of workflow `2026` to begin with a letter" in err
    assert not (tmp_path / "2026").exists()
    assert f"headrace run '{tmp_path}/my flow/my flow.dig'" in digdag("init", str(tmp_path / "my flow"))[1]


def test_options_that_contradict_each_other_are_refused(digdag):
    code, _, err = digdag("retry", "1", "--resume", "--all")
    assert code == 2 and "got both" in err
    code, _, err = digdag("scheduler", "-m")
    assert code == 2 and "go with `--project`" in err
    code, _, err = digdag("projects", "-l", "loud")
    assert code == 2 and "expected a log level" in err


def test_version_is_printed(digdag):
    assert re.fullmatch(r"\d+\.\d+.*\n", digdag("version")[1])


def test_what_a_newcomer_gets_wrong_is_answered(digdag, project):
    digdag("push", "sales", "--project", str(project))
    code, _, err = digdag("delete", "sale")
    assert (code, err) == (2, "error: there is no project `sale`\nhint: did you mean `sales`?\n"), "before it asks"
    run = fields(digdag("start", "sales", "daily", "--session", "2026-01-31")[1])["session id"]
    code, out, err = digdag("logs", run)
    assert (code, out) == (0, "")
    assert err == f"no task of run {run} has written a log; `headrace why {run}` says more\n"


def test_a_workflow_without_a_schedule_cannot_be_filled_in_or_disabled(digdag, tmp_path):
    (tmp_path / "once").mkdir()
    (tmp_path / "once" / "flow.dig").write_text("+a: {echo>: 1}\n")
    digdag("push", "once", "--project", str(tmp_path / "once"))
    for command in (("backfill", "once", "flow", "--from", "2026-01-01"), ("disable", "once", "flow")):
        code, _, err = digdag(*command)
        assert (code, "has no schedule" in err, "`headrace schedules` lists" in err) == (2, True, True), command


def test_two_folders_of_one_name_have_sessions_of_their_own(headrace, tmp_path):
    printed = []
    for place in ("here", "there", "here"):
        file = tmp_path / place / "sales" / "daily.dig"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"+a: {{sh>: 'touch {place}'}}\n+b: {{require>: other}}\n")
        (file.parent / "other.dig").write_text(f"+o: {{sh>: 'touch other-{place}'}}\n")
        (file.parent / "twice_a.py").write_text("from airflow.sdk import DAG\nDAG('twice')\n")
        (file.parent / "twice_b.py").write_text("from airflow.sdk import DAG\nDAG('twice')\n")
        done = headrace("run", str(file), "--session", "2026-01-31")
        assert done.returncode == 0, done.err
        assert (file.parent / place).exists() and (file.parent / f"other-{place}").exists()
        printed.append(done.err)
    assert ["were done before" in text for text in printed] == [False, False, True]


@pytest.mark.parametrize(
    ("folder", "arguments"),
    [
        ("flows", ("main",)),
        ("flows", ("main.dig",)),
        ("flows", ("main", "--project", ".")),
        ("flows", ("main", "--project", "../flows")),
        (".", ("flows/main", "--project", "flows")),
        (".", ("main", "--project", "./flows/")),
    ],
)
def test_a_workflow_may_be_named_by_its_name_and_from_anywhere(headrace, folder, arguments, monkeypatch):
    headrace.write("main.dig", "+a: {echo>: here}\n")
    monkeypatch.chdir(headrace.folder / folder)
    parsing = Parsing(arguments[0], ParserSettings(), *arguments[2:])
    assert [workflow.name for workflow in parsing.result().workflows] == ["main"]
    assert parsing.root == headrace.folder / "flows"


def test_a_workflow_is_checked_by_its_name(headrace):
    headrace.write("main.dig", "+a: {echo>: here}\n")
    for arguments in (("flows/main",), ("main", "--project", "flows"), ("main.dig", "--project", "flows")):
        assert headrace("check", *arguments).out.endswith("main.dig: workflow `main`: 1 task, no schedule\n")
