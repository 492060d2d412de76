"""Whatever a workflow file does while it is loaded, it gives one result and hurts nobody."""

from __future__ import annotations

import hashlib
import os
import select
import signal
import subprocess
import sys
import textwrap

import pytest

from headrace.projects import ParsePool, parse_file, parse_files

# A language of its own: the file is executed and leaves its workflows in a global.
TOY_LOADER = """
from pathlib import Path
from types import SimpleNamespace
from headrace.definition import Node, Workflow
from headrace.errors import LoadError

def load(root, file, content):
    path = root / file
    namespace = {"__file__": str(path), "LoadError": LoadError}
    exec(compile(content, str(path), "exec"), namespace)
    names = namespace.get("names", [])
    root_node = Node(key="", kind="group", config=namespace.get("config", {}))
    return SimpleNamespace(workflows=[Workflow(name=n, language="python", nodes=(root_node,)) for n in names])
"""


@pytest.fixture(scope="module")
def pool(tmp_path_factory):
    """One warm process for all tests of this file: each file must leave it as it was."""
    folder = tmp_path_factory.mktemp("toy")
    (folder / "toy_language.py").write_text(TOY_LOADER)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(folder), prepend=os.pathsep)
        with ParsePool(1, timeout_seconds=20, memory_mb=1024, loader="toy_language:load") as pool:
            yield pool


@pytest.fixture
def parse(pool, tmp_path, monkeypatch):
    def parse(code, **limits):
        (tmp_path / "flow.py").write_text(textwrap.dedent(code))
        for name, value in limits.items():
            monkeypatch.setattr(pool, f"_{name}", value)
        (result,) = pool.parse(tmp_path, ["flow.py"])
        return result

    return parse


def test_file_gives_its_workflows_and_its_digest(parse, tmp_path):
    result = parse("names = ['a', 'b']")
    assert [workflow.name for workflow in result.workflows] == ["a", "b"]
    assert result.error is None
    assert result.digest == hashlib.sha256((tmp_path / "flow.py").read_bytes()).hexdigest()
    assert result.seconds > 0


def test_exception_names_the_line_and_shows_only_the_users_frames(parse):
    error = parse("def deep():\n    return 1 / 0\n\ndeep()").error
    assert (error.message, error.file, error.line) == ("ZeroDivisionError: division by zero", "flow.py", 2)
    assert "in deep" in error.detail
    assert "parse_fork" not in error.detail


def test_error_in_an_imported_file_names_that_file(parse, tmp_path):
    (tmp_path / "lib_of_flow.py").write_text("\n\nraise KeyError('x')")
    error = parse("import sys; sys.path.insert(0, __file__.rpartition('/')[0])\nimport lib_of_flow").error
    assert (error.file, error.line) == ("lib_of_flow.py", 3)


def test_error_of_ours_keeps_its_place_and_hint(parse):
    error = parse("raise LoadError('no good', hint='be good', file='other.py', line=7, detail='because')").error
    assert (error.message, error.file, error.line) == ("no good", "other.py", 7)
    assert (error.hint, error.detail) == ("be good", "because")


def test_syntax_error_names_the_line(parse):
    error = parse("names = ['a']\nif names\n").error
    assert error.message.startswith("SyntaxError: ")
    assert (error.file, error.line) == ("flow.py", 2)


def test_sys_exit(parse):
    error = parse("import sys\nsys.exit(3)").error
    assert (error.message, error.line) == ("`flow.py` called sys.exit(3) while it was loaded", 2)


def test_os_exit_is_not_success(parse):
    error = parse("names = ['a']\nimport os\nos._exit(0)").error
    assert error.message == "`flow.py` ended its process with exit code 0 while it was loaded"


def test_endless_loop_is_stopped_and_says_where(parse):
    result = parse("def spin():\n    while True:\n        pass\n\nspin()", timeout_seconds=0.3)
    assert result.error.message == "loading `flow.py` took longer than 0.3 s and was stopped"
    assert result.error.line in (2, 3)
    assert "in spin" in result.error.detail


def test_file_that_disarms_the_alarm_is_stopped_all_the_same(parse):
    error = parse(
        "import faulthandler, time\nfaulthandler.cancel_dump_traceback_later()\nwhile True: time.sleep(1)",
        timeout_seconds=0.1,
    ).error
    assert "took longer than 0.1 s" in error.message


def test_segfault_names_the_signal_and_the_line(parse):
    error = parse("import ctypes\n\nctypes.string_at(0)").error
    assert error.message == "loading `flow.py` was ended by signal 11 (SIGSEGV)"
    assert error.line == 3


def test_killed_process_names_the_signal(parse):
    error = parse("import os\nos.kill(os.getpid(), 9)").error
    assert error.message == "loading `flow.py` was ended by signal 9 (SIGKILL)"
    assert "memory" in error.hint


def test_memory_limit_names_the_line(parse):
    error = parse("x = 1\nhuge = bytearray(4 * 1024 ** 3)").error
    assert (error.message, error.line) == ("loading `flow.py` needed more than 1024 MB of memory", 2)


def test_memory_limit_is_named_also_if_the_loader_has_its_own_words(parse):
    code = "try:\n    huge = bytearray(4 * 1024 ** 3)\nexcept MemoryError as e:\n    raise LoadError('failed') from e"
    error = parse(code).error
    assert (error.message, error.line) == ("loading `flow.py` needed more than 1024 MB of memory", 2)


def test_lines_are_found_behind_a_link(pool, tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    (tmp_path / "real" / "flow.py").write_text("import ctypes\nctypes.string_at(0)")
    (result,) = pool.parse(tmp_path / "link", ["flow.py"])
    assert (result.error.file, result.error.line) == ("flow.py", 2)


def test_process_that_is_killed_with_its_parent_is_replaced(parse):
    error = parse("import os\nos.kill(os.getppid(), 9)\nwhile True: pass", timeout_seconds=1).error
    assert error.message == "the process that loaded `flow.py` vanished"
    assert parse("names = ['a']", timeout_seconds=20).error is None


def test_prints_are_kept_and_do_not_disturb(parse):
    result = parse("import os, sys\nprint('héllo')\nsys.stderr.write('warn\\n')\nos.system('echo sub')\nnames = ['a']")
    assert result.error is None
    assert result.output.splitlines() == ["héllo", "warn", "sub"]


def test_prints_are_part_of_an_errors_detail(parse):
    error = parse("print('almost there')\n1 / 0").error
    assert error.detail.endswith("output:\nalmost there\n")
    assert "ZeroDivisionError" in error.detail


def test_endless_printing_is_cut_in_the_middle(parse):
    result = parse("print('first')\nfor n in range(50_000): print(n, 'x' * 20)\nprint('last')\nnames = ['a']")
    assert result.error is None
    assert len(result.output) < 10_000
    assert result.output.startswith("first") and result.output.endswith("last\n")


def test_writing_to_every_descriptor_does_not_forge_an_answer(parse):
    result = parse(
        """
        import os
        for descriptor in range(3, 30):
            try: os.write(descriptor, b'{"workflows": []}')
            except OSError: pass
        names = ['a']
        """
    )
    assert result.error is not None
    assert result.workflows == ()


def test_too_large_an_answer_is_refused(parse):
    error = parse("names = ['a']\nconfig = {'x': 'y' * (70 * 1024 * 1024)}").error
    assert error.message == "the workflows of `flow.py` are larger than 64 MB"


def test_definition_that_is_not_json_is_refused(parse):
    error = parse("names = ['a']\nconfig = {'x': object()}").error
    assert "must be made of JSON values" in error.message


def test_process_left_behind_is_killed_and_not_waited_for(parse, tmp_path):
    result = parse(
        f"""
        import os
        pid = os.fork()
        if pid == 0:
            import time
            time.sleep(60)
            os._exit(0)
        open({str(tmp_path / "left")!r}, "w").write(str(pid))
        names = ['a']
        """
    )
    assert result.error is None
    assert result.seconds < 10
    try:
        watch = os.pidfd_open(int((tmp_path / "left").read_text()))
    except ProcessLookupError:
        return
    assert select.select([watch], [], [], 10)[0]
    os.close(watch)


def test_missing_file(pool, tmp_path):
    (result,) = pool.parse(tmp_path, ["gone.py"])
    assert result.error.message == "could not read `gone.py`: No such file or directory"
    assert result.digest == ""


def test_files_do_not_see_each_other(pool, tmp_path):
    for name in ("one.py", "two.py"):
        (tmp_path / name).write_text("import sys\nnames = [str(hasattr(sys, 'seen'))]\nsys.seen = True")
    results = list(pool.parse(tmp_path, ["one.py", "two.py"]))
    assert [result.workflows[0].name for result in results] == ["False", "False"]


def test_module_in_the_current_folder_does_not_replace_ours(tmp_path, monkeypatch):
    (tmp_path / "msgspec.py").write_text("raise RuntimeError('the wrong module')")
    (tmp_path / "flow.dig").write_text("+a:\n  echo>: hi\n")
    monkeypatch.chdir(tmp_path)
    assert parse_file(tmp_path, "flow.dig").error is None


def test_one_file_does_not_wait_for_what_only_others_need(tmp_path):
    source = "import sys\nraise SystemExit([name for name in ('{}', 'pendulum') if name in sys.modules])"
    for name in ("one.py", "two.py"):
        (tmp_path / name).write_text(source.format("headrace.authoring.dig.loading"))
    with ParsePool(1) as pool:
        first, second = pool.parse(tmp_path, ["one.py", "two.py"])
    assert "sys.exit([])" in first.error.message
    assert "sys.exit(['pendulum'])" in second.error.message


def test_many_files_by_several_processes(tmp_path):
    for number in range(20):
        (tmp_path / f"flow{number}.dig").write_text("+a:\n  echo>: hi\n")
    (tmp_path / "bad.dig").write_text("+a:\n  +b\n")
    files = [f"flow{number}.dig" for number in range(20)] + ["bad.dig"]
    results = {result.file: result for result in parse_files(tmp_path, files, processes=2)}
    assert sorted(results) == sorted(files)
    assert [file for file, result in results.items() if result.error] == ["bad.dig"]
    assert results["flow7.dig"].workflows[0].name == "flow7"


def test_iterator_that_is_given_up_stops_its_processes(tmp_path):
    for number in range(3):
        (tmp_path / f"flow{number}.dig").write_text("+a:\n  echo>: hi\n")
    with ParsePool(2) as pool:
        results = pool.parse(tmp_path, [f"flow{number}.dig" for number in range(3)])
        next(results)
        results.close()
        assert len(list(pool.parse(tmp_path, ["flow0.dig"]))) == 1


def test_parse_process_and_its_fork_die_with_the_caller(tmp_path):
    started = tmp_path / "started"
    os.mkfifo(started)
    (tmp_path / "flow.py").write_text(
        f"import os, time\nopen({str(started)!r}, 'w').write(str(os.getpid()))\ntime.sleep(60)"
    )
    (tmp_path / "toy_language.py").write_text(TOY_LOADER)
    code = (
        "import sys; from pathlib import Path; from headrace.projects import parse_file\n"
        "parse_file(Path(sys.argv[1]), 'flow.py', loader='toy_language:load')"
    )
    environ = {**os.environ, "PYTHONPATH": str(tmp_path)}
    with subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], env=environ) as caller:
        fork = os.pidfd_open(int(started.read_text()))
        caller.send_signal(signal.SIGKILL)
    assert select.select([fork], [], [], 10)[0]
    os.close(fork)


def test_the_bytes_that_were_loaded_come_with_the_result(parse, tmp_path):
    text = "names = ['a']\nopen(__file__, 'w').write('other')  # ä"
    result = parse(text)
    assert (result.error, result.content) == (None, text.encode())
    assert result.digest == hashlib.sha256(result.content).hexdigest()


def test_many_bytes_and_those_of_a_broken_file_stay_away(parse):
    assert parse(f"names = ['a']\n# {'x' * 1024 * 1024}").content is None
    assert parse("1 / 0").content is None
