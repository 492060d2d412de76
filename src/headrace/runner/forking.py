"""Fork without cleaning up after threads that do not exist.

Python's `threading` and `logging` renew their locks in every forked child, for the case that another thread held one
of them. A warm parent has one thread, unless a user's file started more, and the renewal is a sixth of all the memory
pages that a child would copy. Forks by anybody else, in the parent or in a task, clean up as ever. What other modules
want to do after a fork, such as `random` with its numbers, is always done.
"""

from __future__ import annotations

import _thread
import os
import sys
from collections.abc import Callable
from typing import Any

_Hook = Callable[[], Any]

_POSTPONED = ("logging", "threading")
_register = os.register_at_fork
_before: list[_Hook] = []
_in_child: list[_Hook] = []
_in_parent: list[_Hook] = []
_renew_number: _Hook
_has_threads = True
"""Whether the next fork may meet other threads."""


def import_with_postponed_hooks() -> None:
    """To be called before anything else imports these modules; afterwards it changes nothing."""
    os.register_at_fork = _postpone
    try:
        import logging  # noqa: F401
        import threading
    finally:
        os.register_at_fork = _register
    global _renew_number
    # The one thing besides locks that Python (3.13 and newer) renews: the main thread's number is the process's.
    _renew_number = threading.main_thread()._set_native_id  # type: ignore[attr-defined]
    _register(before=_call_before, after_in_child=_call_in_child, after_in_parent=_call_in_parent)


def fork() -> int:
    """`os.fork`, cheaper in a process with a single thread."""
    global _has_threads
    _has_threads = _thread._count() > 0
    try:
        return os.fork()
    finally:
        _has_threads = True


def _postpone(
    *, before: _Hook | None = None, after_in_child: _Hook | None = None, after_in_parent: _Hook | None = None
) -> None:
    if sys._getframe(1).f_globals["__name__"] not in _POSTPONED:
        # Imported by one of them, in whatever version of Python that does so.
        given = {"before": before, "after_in_child": after_in_child, "after_in_parent": after_in_parent}
        _register(**{moment: hook for moment, hook in given.items() if hook is not None})
        return
    if before is not None:
        _before.insert(0, before)
    if after_in_child is not None:
        _in_child.append(after_in_child)
    if after_in_parent is not None:
        _in_parent.append(after_in_parent)


def _call_before() -> None:
    if _has_threads:
        for hook in _before:
            hook()


def _call_in_child() -> None:
    if _has_threads:
        for hook in _in_child:
            hook()
    else:
        _renew_number()


def _call_in_parent() -> None:
    if _has_threads:
        for hook in _in_parent:
            hook()
