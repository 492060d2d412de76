"""The code that tries run gets a place of its own, and stays the same in everything else."""

from __future__ import annotations

import gc
import inspect
import subprocess
import sys
import textwrap

import pytest

from headrace.runner import moving
from headrace.runner.moving import move_code


@pytest.fixture(autouse=True)
def unwatched():
    """A measurement of the coverage of these tests is put aside meanwhile."""
    tracing, profiling = sys.gettrace(), sys.getprofile()
    sys.settrace(None)
    sys.setprofile(None)
    yield
    sys.settrace(tracing)
    sys.setprofile(profiling)


def module(text: str, name: str = "headrace.pretended") -> dict:
    names = {"__name__": name}
    exec(compile(textwrap.dedent(text), f"<{name}>", "exec"), names)
    return names


FUNCTIONS = """
    def called(x=1, *, y=2):
        return [inner(one) for one in (x, y)]
    def inner(x):
        return (lambda: x)()
    def cold():
        pass
"""


def test_what_is_called_has_equal_code_somewhere_else():
    made = module(FUNCTIONS)
    before = {name: made[name].__code__ for name in ("called", "inner", "cold")}
    move_code(lambda: made["called"](), ())
    for name in ("called", "inner"):
        assert made[name].__code__ is not before[name]
        assert made[name].__code__ == before[name]
        assert made[name].__code__.co_filename == before[name].co_filename
    assert made["cold"].__code__ is before["cold"]
    assert made["called"](3, y=4) == [3, 4]


def test_functions_that_are_made_in_others_move_with_them():
    made = module(FUNCTIONS)
    (before,) = (one for one in made["inner"].__code__.co_consts if inspect.iscode(one))
    move_code(lambda: made["called"](), ())
    (after,) = (one for one in made["inner"].__code__.co_consts if inspect.iscode(one))
    assert after is not before
    assert after == before


def test_functions_that_share_code_share_it_afterwards():
    made = module("def maker(x):\n    def one(): return x\n    return one\na, b = maker(1), maker(2)")
    move_code(lambda: made["a"](), ())
    assert made["a"].__code__ is made["b"].__code__
    assert (made["a"](), made["b"]()) == (1, 2)


def test_what_a_named_module_defines_moves_without_being_called():
    made, other = module(FUNCTIONS), module(FUNCTIONS, "headrace.other")
    before, others = made["cold"].__code__, other["cold"].__code__
    move_code(lambda: None, ["headrace.pretended"])
    assert made["cold"].__code__ is not before
    assert other["cold"].__code__ is others


def test_functions_of_users_keep_their_code():
    made = module(FUNCTIONS, "users_dag")
    made["called"].__module__ = "headrace.runner.child"  # as `functools.wraps` does it
    before = made["called"].__code__
    move_code(lambda: made["called"](), ["headrace.runner.child", "users_dag"])
    assert made["called"].__code__ is before


@pytest.mark.parametrize("watch", [sys.settrace, sys.setprofile])
def test_nothing_moves_while_somebody_watches(watch):
    made = module(FUNCTIONS)
    before = made["called"].__code__
    watch(lambda *_: None)
    try:
        move_code(lambda: made["called"](), ())
    finally:
        watch(None)
    assert made["called"].__code__ is before


@pytest.mark.skipif(sys.version_info < (3, 12), reason="there is no sys.monitoring")
def test_nothing_moves_while_a_tool_monitors():
    made = module(FUNCTIONS)
    before = made["called"].__code__
    sys.monitoring.use_tool_id(4, "test")
    try:
        move_code(lambda: made["called"](), ())
    finally:
        sys.monitoring.free_tool_id(4)
    assert made["called"].__code__ is before


def test_a_rehearsal_that_fails_leaves_nobody_watching():
    with pytest.raises(ZeroDivisionError):
        move_code(lambda: 1 / 0, ())
    assert sys.getprofile() is None


def test_source_and_traceback_are_those_of_the_file():
    function = moving._called
    move_code(lambda: function(lambda: None), ())
    assert "def _called(" in inspect.getsource(function)
    with pytest.raises(ZeroDivisionError) as raised:
        function(lambda: 1 / 0)
    assert [entry.name for entry in raised.traceback][1] == "_called"


PAGES = """
    import gc, sys
    from headrace.runner.moving import move_code
    from headrace.runner.packing import fill_gaps

    text = "".join(f"def f{number}(x=None):\\n    return x\\n" for number in range(3000))
    names = {"__name__": "headrace.pretended"}
    exec(text, names)
    hot = [names[f"f{number}"] for number in range(0, 3000, 60)]
    before = len({id(one.__code__) // 4096 for one in hot})
    gc.collect()
    fill_gaps()
    move_code(lambda: [one() for one in hot], ())
    print(before, len({id(one.__code__) // 4096 for one in hot}))
"""


def test_code_that_is_used_together_shares_pages():
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(PAGES)], capture_output=True, text=True, check=True)
    before, after = map(int, done.stdout.split())
    assert after * 3 < before


def test_old_code_leaves_no_gaps():
    made = module(FUNCTIONS)
    before = id(made["called"].__code__)
    move_code(lambda: made["called"](), ())
    gc.collect()
    assert before in map(id, moving._left)
