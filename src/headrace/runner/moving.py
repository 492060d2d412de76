"""Puts the code that every try runs side by side.

To call a function is to count the users of its code, and to write to the page that the code is on, which a forked
process has to copy first. Loaded as it is written, the code of a try lies between code that no try runs.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterable
from types import CodeType, FrameType, FunctionType
from typing import Any

_left: list[CodeType] = []
"""What was replaced stays, because the gaps that it left would be filled by new objects of forked processes."""


def move_code(rehearse: Callable[[], None], modules: Iterable[str]) -> None:
    """Give new code, equal to the old, to our functions that a rehearsal calls and to those of the named modules.

    Functions of users and of other libraries are left alone. Where somebody watches what is called, such as a debugger
    or a measurement of coverage, all are: they know code when they see it again.
    """
    if _is_watched():
        return
    called = _called(rehearse)
    named = set(modules)
    functions = [one for one in gc.get_objects() if type(one) is FunctionType and _is_ours(one)]
    moving = [one for one in functions if id(one.__code__) in called or _module_of(one) in named]
    moving.sort(key=lambda one: called.get(id(one.__code__), len(called)))
    moved: dict[int, CodeType] = {}
    for function in moving:
        function.__code__ = _moved(function.__code__, moved, called)


def _is_watched() -> bool:
    if sys.gettrace() is not None or sys.getprofile() is not None:
        return True
    if sys.version_info >= (3, 12):
        return any(sys.monitoring.get_tool(number) is not None for number in range(6))
    return False


def _is_ours(function: FunctionType) -> bool:
    return _module_of(function).startswith("headrace.")


def _module_of(function: FunctionType) -> str:
    # Not what `__module__` says: a decorator may have copied that from the function around which it puts another.
    return str(function.__globals__.get("__name__"))


def _called(rehearse: Callable[[], None]) -> dict[int, int]:
    """The `id` of each code that a rehearsal runs, with its place in the order of first calls."""
    called: dict[int, int] = {}

    def notice(frame: FrameType, event: str, argument: Any) -> None:
        if event == "call":
            called.setdefault(id(frame.f_code), len(called))

    sys.setprofile(notice)
    try:
        rehearse()
    finally:
        sys.setprofile(None)
    return called


def _moved(code: CodeType, moved: dict[int, CodeType], called: dict[int, int]) -> CodeType:
    """The same code somewhere else, and the code of functions that are made in it and were called as well."""
    if id(code) not in moved:
        constants = [
            _moved(one, moved, called) if isinstance(one, CodeType) and id(one) in called else one
            for one in code.co_consts
        ]
        moved[id(code)] = code.replace(co_consts=tuple(constants))
        _left.append(code)
    return moved[id(code)]
