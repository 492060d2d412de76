"""`sh>` and `py>`: folders, environments, arguments, what they leave behind, how they fail."""

from __future__ import annotations

import linecache
import os
import signal
import sys

import pytest


@pytest.fixture
def code(project, request):
    """Writes a Python module of the project with a name that no other test has imported."""
    name = f"code_{abs(hash(request.node.nodeid)):x}"

    def write(text: str) -> str:
        project.write(f"{name}.py", text)
        return name

    yield write
    sys.modules.pop(name, None)


def test_sh_sees_parameters_in_its_environment(project, capfd):
    text = """
        +t:
          sh>: echo "$name|$number|$list|$flag|$own|$extra|$task_name|${name}"
          own: 1
          not-a-name: 1
          _env: {extra: "${name}!", name_2: x}
    """
    result = project.run(text, params={"name": "a b", "number": 3, "list": [1, {"k": "é"}], "flag": True})
    assert result.outcome == "success"
    assert capfd.readouterr().out == 'a b|3|[1,{"k":"é"}]|true|1|a b!|+wf+t|a b\n'


def test_sh_works_in_the_projects_folder_and_reads_no_input(project, capfd):
    assert project.run("+t: {sh>: 'pwd; cat'}").outcome == "success"
    assert capfd.readouterr().out == f"{project.root}\n"


def test_workdir_moves_the_task_but_not_out_of_the_project(project, capfd):
    (project.root / "sub").mkdir()
    assert project.run("+t: {_export: {_workdir: sub}, sh>: pwd}").outcome == "success"
    assert capfd.readouterr().out == f"{project.root}/sub\n"
    assert "to be inside the project" in project.run("+t: {_export: {_workdir: ..}, sh>: pwd}").error.message
    assert "does not exist" in project.run("+t: {_export: {_workdir: none}, sh>: pwd}").error.message


@pytest.mark.parametrize(("script", "code"), [("exit 3", 3), ("no_such_command_here", 127), ("kill -9 $$$$", 137)])
def test_sh_fails_with_the_commands_code(project, script, code):
    result = project.run(f"+t: {{sh>: '{script}', _retry: 1}}")
    assert (result.outcome, result.is_retryable) == ("failed", True)
    assert (result.error.type, result.error.message) == ("CommandFailed", f"Command failed with code {code}")


def test_another_shell_and_its_default_for_all_tasks(project, capfd):
    text = "+t: {sh>: 'print(1 + 1)', shell: ['PYTHON', '-I']}".replace("PYTHON", sys.executable)
    assert project.run(text).outcome == "success"
    inherited = {"sh": {"shell": [sys.executable, "-I"]}}
    assert project.run("+t: {sh>: 'print(2 + 2)'}", params=inherited).outcome == "success"
    assert capfd.readouterr().out == "2\n4\n"
    assert "could not start `/no/shell`: No such file" in project.run("+t: {sh>: x, shell: [/no/shell]}").error.message


def test_scripts_stay_in_the_tasks_process_group_and_leave_no_files(project, capfd):
    assert (
        project.run("+t: {sh>: 'ps -o pgid= -p $$$$ || cut -d\" \" -f5 /proc/$$$$/stat; echo $0'}").outcome == "success"
    )
    group, script = capfd.readouterr().out.split()
    assert int(group) == os.getpgrp()
    assert not os.path.exists(script)


def test_a_script_can_read_itself_and_nobody_else_can(project, capfd):
    assert project.run("+t: {sh>: 'stat -c %a $0; cat $0'}").outcome == "success"
    mode, text = capfd.readouterr().out.splitlines()
    assert (mode, text) == ("600", "stat -c %a $0; cat $0")


def test_programs_of_a_script_are_ended_by_a_closed_pipe(project, capfd):
    # With SIGPIPE ignored, as it is in Python, `yes` would complain and `sh` would say 1.
    assert project.run("+t: {sh>: '(yes; echo $? >&2) | head -n 1'}").outcome == "success"
    printed = capfd.readouterr()
    assert (printed.out, printed.err) == ("y\n", "141\n")


def test_a_shell_is_looked_for_on_the_path_that_the_script_gets(project, capfd):
    project.write("tools/mine", "#!/bin/sh\necho mine; cat $1; echo\n")
    (project.root / "tools" / "mine").chmod(0o755)
    assert "could not start `mine`: No such file" in project.run("+t: {sh>: x, shell: [mine]}").error.message
    assert (
        project.run(f"+t: {{sh>: x, shell: [mine], _env: {{PATH: '{project.root}/tools:/bin'}}}}").outcome == "success"
    )
    assert project.run("+t: {sh>: y, shell: [tools/mine]}").outcome == "success"
    assert capfd.readouterr().out.split() == ["mine", "x", "mine", "y"]


def test_a_task_that_is_stopped_lets_its_script_clean_up(project):
    class Stopped(BaseException):
        pass

    def stop_once_ready(number, frame):
        is_waiting = "os.waitpid" in linecache.getline(frame.f_code.co_filename, frame.f_lineno)
        if is_waiting and (project.root / "ready").exists():
            signal.setitimer(signal.ITIMER_REAL, 0)
            raise Stopped

    before = signal.signal(signal.SIGALRM, stop_once_ready)
    signal.setitimer(signal.ITIMER_REAL, 0.01, 0.01)
    try:
        with pytest.raises(Stopped):
            project.run("+t: {sh>: \"trap 'kill $!; touch cleaned; exit' TERM; sleep 60 & touch ready; wait\"}")
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert (project.root / "cleaned").exists()


def test_a_script_may_delete_its_own_file(project):
    assert project.run("+t: {sh>: 'rm $0'}").outcome == "success"


def test_secrets_are_filled_in_and_masked(project, capfd):
    project.answers.secrets = {"db.password": "hunter2"}
    text = "+t: {sh>: 'echo ${secret:db.password} $pw', _env: {pw: '<${secret:db.password}>'}}"
    assert project.run(text).outcome == "success"
    assert capfd.readouterr().out == "hunter2 <hunter2>\n"
    assert project.answers.masked == ["hunter2", "hunter2"]
    message = project.run("+t: {sh>: 'echo ${secret:nope}'}").error.message
    assert message.startswith("the project has no secret `nope`\nhint: `headrace secrets --project PROJECT --set nope`")


@pytest.mark.parametrize(
    ("names", "found"),
    [
        ("{db: other}", "other.password"),
        ("{db: {password: root.key}}", "root.key"),
        ("{db: {user: root.key}}", "db.password"),
        ("{db: true}", "db.password"),
        ("{db: {password: true}}", "db.password"),
        ("'${name}'", "db.password"),
        ("{db: '${name}'}", "chosen.password"),
    ],
)
def test_secrets_may_be_looked_up_under_other_names(project, capfd, names, found):
    project.answers.secrets = {found: "hunter2"}
    text = f"+t: {{sh>: 'echo ${{secret:db.password}}', _secrets: {names}}}"
    assert project.run(text, params={"name": "chosen"}).outcome == "success"
    assert capfd.readouterr().out == "hunter2\n"


def test_exported_names_of_secrets_hold_for_everything_below(project, capfd):
    project.answers.secrets = {"other.password": "hunter2"}
    params = {"_secrets": {"db": "other"}}
    assert project.run("+t: {sh>: 'echo ${secret:db.password}'}", params=params).outcome == "success"
    assert capfd.readouterr().out == "hunter2\n"


def test_env_names_are_checked(project):
    assert "letters, digits and `_`, got: `a-b`" in project.run("+t: {sh>: x, _env: {a-b: 1}}").error.message


def test_py_fills_arguments_by_name(project, code, capfd):
    module = code("def go(a, b='default', *, c): print(a, b, c)")
    assert project.run(f"+t: {{py>: {module}.go, a: 1, c: '${{x}}'}}", params={"x": 2}).outcome == "success"
    assert capfd.readouterr().out == "1 default 2\n"


@pytest.mark.parametrize(
    ("function", "printed"),
    [
        ("def f(a, b=5, *, c, d=7): print(a, b, c, d)", "1 5 3 7"),
        ("def f(*rest, a, **others): print(a, rest, others['c'])", "1 () 3"),
        ("def f(x=2, /, a=0): print(x, a)", "2 1"),
        ("import functools\ndef g(a): print(a)\n@functools.wraps(g)\ndef f(*args, **kw): g(*args, **kw)", "1"),
        ("import functools\nf = functools.partial(print, 'p')", "p"),
    ],
)
def test_py_fills_arguments_of_every_kind(project, code, capfd, function, printed):
    name = code(f"{function}\n")
    result = project.run(f"+t: {{py>: {name}.f}}", params={"a": 1, "c": 3})
    assert result.outcome == "success", result.error
    assert capfd.readouterr().out == f"{printed}\n"


def test_py_gives_everything_to_keyword_arguments(project, code, capfd):
    module = code("def go(a, **rest): print(a, rest['b'], rest['task_name'])")
    assert project.run(f"+t: {{py>: {module}.go, a: 1, b: 2}}").outcome == "success"
    assert capfd.readouterr().out == "1 2 +wf+t\n"


CLASSES = """
class Task:
    def __init__(self, a): self.a = a
    def run(self, b): print('run', self.a, b)
    def other(self): print('other', self.a)
class Bare:
    @staticmethod
    def go(b): print('bare', b)
"""


@pytest.mark.parametrize(
    ("path", "output"),
    [("Task", "run 1 2\n"), ("Task.run", "run 1 2\n"), ("Task.other", "other 1\n"), ("Bare.go", "bare 2\n")],
)
def test_py_calls_methods(project, code, capfd, path, output):
    module = code(CLASSES)
    assert project.run(f"+t: {{py>: {module}.{path}, a: 1, b: 2}}").outcome == "success"
    assert capfd.readouterr().out == output


def test_py_leaves_parameters_and_subtasks_behind(project, code):
    module = code(
        """
        import digdag
        from digdag import env
        class Worker:
            def work(self): pass
        def step(x): pass
        def go():
            digdag.env.store({"a": digdag.env.params["n"]}, b=[1])
            env.export(c=3)
            env.set_state(x=1)
            env.add_subtask(step, x=1)
            env.add_subtask({"echo>": "hi"})
            env.add_subtask(Worker.work)
        """
    )
    result = project.run(f"+t: {{py>: {module}.go, n: 5}}")
    assert (result.store, result.export) == ({"a": 5, "b": [1]}, {"c": 3})
    assert [(node.key, node.operator, node.config) for node in result.growth[1:]] == [
        ("+wf+t^sub+subtask0", "py", {"_command": f"{module}.step", "x": 1}),
        ("+wf+t^sub+subtask1", "echo", {"_command": "hi"}),
        ("+wf+t^sub+subtask2", "py", {"_command": f"{module}.Worker.work"}),
    ]
    again = project.run(f"+t: {{py>: {module}.step, x: 5}}")
    assert (again.store, again.growth) == ({}, ())


def test_sh_names_a_parameter_that_is_too_large_for_a_variable(project):
    failed = project.run("+t: {sh>: 'true'}", params={"rows": "x" * 200_000}).error
    assert "could not start `/bin/sh`: Argument list too long" in failed.message
    assert "the largest variable is `rows` with 200000 characters" in failed.message


def test_py_may_say_more_about_its_subtasks(project, code):
    module = code(
        """
        import digdag
        def step(n): pass
        def go():
            digdag.env.subtask_config["_export"] = {"a": 1}
            for n in range(2):
                digdag.env.add_subtask(step, n=n)
            digdag.env.subtask_config["_parallel"] = True
        """
    )
    for python in ("", f", python: {sys.executable}"):
        group, *tasks = project.run(f"+t: {{py>: {module}.go{python}}}").growth
        assert group.export == {"a": 1}
        assert [(task.key, task.upstream) for task in tasks] == [("+wf+t^sub+subtask0", ()), ("+wf+t^sub+subtask1", ())]


def test_py_sees_its_folder_and_env_but_not_parameters_in_the_environment(project, code, capfd):
    module = code("import os\ndef go(): print(os.getcwd(), os.environ['MINE'], 'name' in os.environ)")
    before, path = os.getcwd(), list(sys.path)
    assert (
        project.run(f"+t: {{py>: {module}.go, _env: {{MINE: '${{name}}'}}}}", params={"name": "n"}).outcome == "success"
    )
    assert capfd.readouterr().out == f"{project.root} n False\n"
    assert (os.getcwd(), sys.path, "MINE" in os.environ) == (before, path, False)


def test_a_file_of_the_project_cannot_hide_the_standard_library(project, code, capfd):
    project.write("colorsys.py", "raise SystemExit('not me')")
    module = code("import colorsys\ndef go(): print(colorsys.ONE_THIRD < 1)")
    assert project.run(f"+t: {{py>: {module}.go}}").outcome == "success"
    assert capfd.readouterr().out == "True\n"


@pytest.mark.parametrize(
    ("path", "error_type", "message"),
    [
        ("go", "ValueError", "Python command failed with code 1: broken (ValueError)"),
        ("needs", "TypeError", "Method 'needs' requires parameter 'thing' but not set"),
        ("leave", "SystemExit", "Python command failed with code 4"),
        ("leave_quietly", "SystemExit", "Python command failed with code 0"),
        ("bad_store", "TypeError", "parameters must be made of JSON values"),
        ("nothing", "OperatorError", "` has no `nothing`"),
        ("Nothing.run", "OperatorError", "` has no `Nothing`"),
        ("number", "OperatorError", "is not a function"),
        ("number.run", "OperatorError", "is neither a module nor a class"),
    ],
)
def test_py_that_fails(project, code, path, error_type, message):
    module = code(
        """
        import digdag, sys
        number = 5
        def go(): helper()
        def helper(): raise ValueError("broken")
        def needs(thing): pass
        def leave(): sys.exit(4)
        def leave_quietly(): sys.exit()
        def bad_store(): digdag.env.store(x=object())
        """
    )
    result = project.run(f"+t: {{py>: {module}.{path}}}")
    assert (result.outcome, result.error.type, result.is_retryable) == ("failed", error_type, True)
    assert message in result.error.message
    if path == "go":
        assert "in helper" in result.error.traceback
        assert "headrace" not in result.error.traceback.replace(str(project.root), "")


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("function", "expected `py>` to name a function like `module.function`, got: `function`"),
        ("no_such_module_here.go", "there is no module `no_such_module_here` for `py>: no_such_module_here.go`"),
        ("no_such_module_here.Class.go", "there is no module `no_such_module_here.Class`"),
    ],
)
def test_py_commands_that_do_not_exist(project, command, message):
    assert message in project.run(f"+t: {{py>: {command}}}").error.message


def test_a_missing_import_inside_the_users_module_is_shown_as_such(project, code):
    module = code("import no_such_dependency\ndef go(): pass")
    result = project.run(f"+t: {{py>: {module}.go}}")
    assert result.error.type == "ModuleNotFoundError"
    assert "No module named 'no_such_dependency'" in result.error.message
    assert f"{module}.py" in result.error.traceback


def test_py_under_another_python(project, code, capfd):
    module = code("import digdag\ndef go(a): print(a); digdag.env.store(b=a); digdag.env.add_subtask(go, a=2)")
    result = project.run(f"+t: {{py>: {module}.go, a: é, python: [{sys.executable}, -B]}}")
    assert (result.outcome, result.store) == ("success", {"b": "é"})
    assert [node.key for node in result.growth] == ["+wf+t^sub", "+wf+t^sub+subtask0"]
    assert capfd.readouterr().out == "é\n"
    failed = project.run(f"+t: {{py>: {module}.go, python: {sys.executable}}}")
    assert failed.error.message == (
        "Python command failed with code 1: Method 'go' requires parameter 'a' but not set (TypeError)"
    )


def test_an_exception_under_another_python_is_told_once_and_without_our_frames(project, code, capfd):
    module = code("def go(): deep()\ndef deep(): raise KeyError('k')")
    failed = project.run(f"+t: {{py>: {module}.go, python: {sys.executable}}}").error
    assert failed.message == "Python command failed with code 1: 'k' (KeyError)"
    assert failed.traceback.count("File ") == 2 and failed.traceback.endswith("KeyError: 'k'")
    assert capfd.readouterr().err == "", "whoever runs the task writes it to the log"
