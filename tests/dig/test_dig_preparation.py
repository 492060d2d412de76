"""What the warm parent of a `.dig` file does once for all of its tasks, and what it leaves to them."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import textwrap
from importlib.machinery import SourceFileLoader

import pytest

from headrace.runner.dig_preparation import Survey, find_modules, import_libraries
from headrace.runner.dig_task import rehearsal
from headrace.testing.project import Project as RunnableProject

WORKFLOW = """
    +a: {py>: steps.first}
    +b:
      for_each>: {n: [1]}
      _do:
        - {+c: {py>: inner.steps.Job.run}}
      _error: {py>: handlers.tell}
    +d: {call>: below/other}
    +e: {py>: elsewhere.work, python: /usr/bin/python2}
    +f: {py>: "${name}.work"}
"""


@pytest.fixture
def library(tmp_path_factory, monkeypatch):
    """A folder for libraries; those that were imported are forgotten afterwards."""
    folder = tmp_path_factory.mktemp("libraries")
    monkeypatch.syspath_prepend(str(folder))
    before = set(sys.modules)
    yield folder
    for name in set(sys.modules) - before:
        if name.startswith("digcore_"):
            del sys.modules[name]


def imported() -> set[str]:
    return {name for name in sys.modules if name.startswith("digcore_")}


def test_a_survey_finds_commands_wherever_they_are_written(project):
    project.write("below/other.dig", "+x: {py>: deep.work, word: '${moment()}'}\n+again: {call>: other}\n")
    survey = Survey(project.load(WORKFLOW))
    assert {(folder.name, command) for folder, command in survey.commands} == {
        (project.root.name, "steps.first"),
        (project.root.name, "inner.steps.Job.run"),
        (project.root.name, "handlers.tell"),
        ("below", "deep.work"),
    }
    assert "moment" in survey.text


def test_a_called_file_that_is_broken_or_missing_is_left_to_its_task(project):
    project.write("broken.dig", "+x: {nonsense")
    survey = Survey(project.load("+a: {call>: broken}\n+b: {call>: missing}\n+c: {call>: ../../outside}"))
    assert survey.commands == set()


def test_libraries_are_imported_and_the_projects_modules_are_not_run(project, library):
    (library / "digcore_direct.py").write_text("")
    (library / "digcore_indirect.py").write_text("")
    (library / "digcore_unused.py").write_text("")
    (library / "digcore_broken.py").write_text("1 / 0")
    (library / "digcore_leaves.py").write_text("raise SystemExit(1)")
    project.write("steps.py", """
        import digdag
        import digcore_broken, digcore_leaves, digcore_missing
        from digcore_direct import something
        from helper import more
        raise AssertionError("run by the parent")
        def first():
            import digcore_unused
    """)  # fmt: skip
    project.write("helper/__init__.py", "import digcore_indirect\nfrom . import more\n")
    import_libraries(Survey(project.load("+a: {py>: steps.first}")))
    assert imported() == {"digcore_direct", "digcore_indirect"}


def test_a_task_with_variables_of_its_own_keeps_libraries_for_itself(project, library):
    (library / "digcore_direct.py").write_text("")
    project.write("steps.py", "import digcore_direct")
    import_libraries(Survey(project.load("+a: {py>: steps.first, _env: {X: 1}}\n+b: {py>: steps.first}")))
    assert imported() == set()


def test_a_project_that_is_on_the_path_is_still_no_library(project, library, monkeypatch):
    monkeypatch.syspath_prepend(str(project.root))
    project.write("digcore_own.py", "raise AssertionError('run by the parent')")
    project.write("steps.py", "import digcore_own")
    import_libraries(Survey(project.load("+a: {py>: steps.first}")))
    assert imported() == set()


def test_each_try_runs_its_module_anew(tmp_path):
    project = RunnableProject(tmp_path)
    project.write("steps.py", """
        import os
        with open("imported.txt", "a") as stream:
            print(os.getpid(), file=stream)

        def work(day):
            print("day", day)
    """)  # fmt: skip
    project.write("main.dig", """
        timezone: Asia/Tokyo
        _export: {day: "${moment(session_time).format('YYYY-MM-DD Z')}"}
        +a: {py>: steps.work}
        +b: {py>: steps.work}
    """)  # fmt: skip
    project.run("run", "main.dig", "--session", "2026-01-31").check()
    processes = project.read("imported.txt").split()
    assert len(processes) == len(set(processes)) == 2


def test_a_module_is_read_once_unless_it_changes(project, library, monkeypatch, capfd):
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path])
    text = "+t: {py>: digcore_ready.work}\n+u: {py>: digcore_broken.work}"
    project.write("digcore_ready.py", "def work(): print('first')\n")
    project.write("digcore_broken.py", "def work(:\n")
    find_modules(Survey(project.load(text)))
    reads = []
    read = SourceFileLoader.get_data
    monkeypatch.setattr(SourceFileLoader, "get_data", lambda self, path: (reads.append(path), read(self, path))[1])

    def run_anew() -> str:
        sys.modules.pop("digcore_ready", None)
        assert project.run(text).outcome == "success"
        return capfd.readouterr().out

    assert run_anew() == "first\n"
    assert not any("digcore_ready" in path for path in reads)
    project.write("digcore_ready.py", "def work(): print('the second')\n")
    assert run_anew() == "the second\n"
    assert "SyntaxError" in project.run(text, "+wf+u").error.traceback


@pytest.mark.parametrize(
    ("task", "programs"), [("sh>: touch made", ["/\0"]), ("py>: steps.first", []), ("echo>: x", [])]
)
def test_a_rehearsal_goes_as_far_as_starting_a_program(project, monkeypatch, tmp_path, task, programs):
    started = []
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    start = os.posix_spawn
    monkeypatch.setattr(os, "posix_spawn", lambda path, *args, **kw: (started.append(path), start(path, *args, **kw)))
    run, file, request = rehearsal(project.load(f"+t: {{{task}}}"))
    assert run(file, request, project.answers).outcome == "success"
    assert started == programs
    assert {path.name for path in (*tmp_path.iterdir(), *project.root.iterdir())} == {"wf.dig"}


@pytest.mark.parametrize(
    ("text", "kind"), [("x", None), ("${a}", "1 + 1"), ("${moment(session_time).year()}", "moment")]
)
def test_a_rehearsal_evaluates_what_the_file_has_to_evaluate(project, text, kind):
    run, file, request = rehearsal(project.load(f"+t: {{echo>: '{text}'}}"))
    assert kind in request.node.config["expression"] if kind else "expression" not in request.node.config
    assert run(file, request, project.answers).outcome == "success"


HEAVY = ("concurrent.futures", "email", "importlib.metadata", "random", "shutil", "ssl", "tempfile")


@pytest.mark.parametrize("task", ["sh>: 'true'", "py>: steps.first"])
def test_the_parent_of_tasks_stays_small(project, task):
    """A fork takes longer the more there is in memory, and `random` and thread pools do something in every child."""
    project.write("wf.dig", f"+t: {{{task}}}\n")
    project.write("steps.py", "def first(): pass\n")
    program = f"""
        import sys
        from pathlib import Path
        from headrace.authoring import load_file
        from headrace.runner.programs import prepare, rehearsal_of
        file = load_file(Path({str(project.root)!r}), "wf.dig")
        prepare("dig", file)
        run, rehearsed, request = rehearsal_of("dig", file)
        assert run(rehearsed, request, None).outcome == "success"
        print(*[name for name in {HEAVY} if name in sys.modules])
    """
    command = [sys.executable, "-S", "-c", textwrap.dedent(program)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert (done.stdout, done.returncode) == ("\n", 0), done.stderr
