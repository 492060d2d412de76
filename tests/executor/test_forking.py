"""Forks that clean up after other threads only where there are any."""

from __future__ import annotations

import subprocess
import sys

import pytest

_START = """
import os, sys
from headrace.runner import forking
forking.import_with_postponed_hooks()
import logging, threading

def tell(fork):
    before = threading._active_limbo_lock
    pid = fork()
    if pid == 0:
        # The lock is a new one where Python has cleaned up.
        is_new = threading._active_limbo_lock is not before
        print(is_new, threading.main_thread() is threading.current_thread(), flush=True)
        os._exit(0)
    os.waitpid(pid, 0)
    assert threading._active_limbo_lock is before
"""

_HELD_LOCK = """
is_held, may_end = threading.Event(), threading.Event()
handler = logging.StreamHandler(sys.stdout)
logging.getLogger().addHandler(handler)

def hold():
    with handler.lock:
        is_held.set()
        may_end.wait()

threading.Thread(target=hold).start()
is_held.wait()
pid = FORK()
if pid == 0:
    logging.warning("said in the child")
    os._exit(0)
os.waitpid(pid, 0)
may_end.set()
"""


def _output(script: str) -> str:
    command = [sys.executable, "-c", _START + script]
    return subprocess.run(command, capture_output=True, text=True, timeout=30, check=True).stdout


def test_a_process_with_one_thread_has_nothing_to_clean_up() -> None:
    assert _output("tell(forking.fork)") == "False True\n"


def test_forks_of_others_clean_up_as_ever() -> None:
    assert _output("tell(forking.fork); tell(os.fork)") == "False True\nTrue True\n"


@pytest.mark.parametrize("fork", ["forking.fork", "os.fork"])
def test_hooks_of_others_are_always_called(fork: str) -> None:
    script = f"""
forking._postpone(after_in_child=lambda: print("reseeded", flush=True))
pid = {fork}()
if pid == 0:
    os._exit(0)
os.waitpid(pid, 0)
"""
    assert _output(script) == "reseeded\n"


def test_the_main_thread_has_the_number_of_its_process() -> None:
    script = """
pid = forking.fork()
if pid == 0:
    print(threading.main_thread().native_id == threading.get_native_id() == os.getpid(), flush=True)
    os._exit(0)
os.waitpid(pid, 0)
"""
    assert _output(script) == "True\n"


def test_the_hooks_that_are_left_out_are_the_ones_that_were_read() -> None:
    script = "print([hook.__qualname__ for hook in forking._in_child])"
    assert _output(script) == "['_after_fork', '_after_at_fork_child_reinit_locks']\n"


@pytest.mark.parametrize("fork", ["forking.fork", "os.fork"])
def test_a_lock_that_another_thread_holds_is_free_in_the_child(fork: str) -> None:
    assert _output(_HELD_LOCK.replace("FORK", fork)) == "said in the child\n"
