"""How the process of a command ends: quickly, but not before everybody else has done what they have to do then."""

from __future__ import annotations

import subprocess
import sys


def ended(preparation, command):
    program = f"import atexit, threading, time\n{preparation}\nfrom headrace.cli.main import main\nmain({command!r})"
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)


def test_functions_that_others_registered_are_called_at_the_end():
    done = ended("atexit.register(print, 'the last word')", ["no-such-command"])
    assert done.returncode == 2
    assert done.stdout == "the last word\n"
    assert done.stderr.startswith("error: there is no command `no-such-command`")


def test_a_thread_that_wants_to_be_waited_for_is_waited_for():
    work = "threading.Thread(target=lambda: [threading.main_thread().join(), print('done, too')]).start()"
    done = ended(work, ["version"])
    assert done.returncode == 0
    assert done.stdout.splitlines()[1:] == ["done, too"]


def test_who_closed_the_output_is_told_nothing_and_that_is_fine():
    command = 'exec "$0" -m headrace.cli version >&-'
    done = subprocess.run(["bash", "-c", command, sys.executable], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")


def test_an_output_that_is_full_is_told_in_a_sentence():
    command = 'exec "$0" -m headrace.cli version >/dev/full'
    done = subprocess.run(["bash", "-c", command, sys.executable], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (1, "error: could not write: no space left on device\n")
