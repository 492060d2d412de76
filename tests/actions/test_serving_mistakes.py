"""What cannot serve says so. A loop that ends early takes its process with it: half of one would keep its leases."""

from __future__ import annotations

import subprocess
import sys
from contextlib import nullcontext

import pytest
from sqlalchemy import text

from headrace.actions.parts import Parts
from headrace.actions.serving import Serving
from headrace.errors import SchemaError
from headrace.settings import load_settings

PROGRAM = """
import logging, threading
from headrace.actions.serving import AgentServer

class Broken:
    def start(self): pass
    def run(self, stop): raise RuntimeError("a mistake")

logging.basicConfig()
AgentServer(Broken(), 0.0).start()
threading.Event().wait(60)
"""


def test_the_process_says_why_and_leaves():
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=50)
    assert done.returncode == 1
    assert "the agent cannot go on, and its process ends" in done.stderr and "RuntimeError: a mistake" in done.stderr


WRONG_DATABASE = """
import logging, threading
from headrace.actions.serving import leave_with_thread
from headrace.errors import SchemaError

def renew(): raise SchemaError("there is no table")

logging.basicConfig()
threading.excepthook = leave_with_thread
threading.Thread(target=renew, name="headrace-lease").start()
threading.Event().wait(60)
"""


def test_a_thread_that_meets_a_wrong_database_ends_the_process():
    done = subprocess.run([sys.executable, "-c", WRONG_DATABASE], capture_output=True, text=True, timeout=50)
    assert done.returncode == SchemaError.exit_code
    assert "the thread `headrace-lease` cannot go on, and its process ends: there is no table" in done.stderr
    assert "Traceback" not in done.stderr


class Quiet:
    """A server that does nothing but tell that it was started."""

    is_started = False

    def start(self):
        self.is_started = True

    def stop(self):
        pass


@pytest.mark.parametrize(
    ("change", "difference"),
    [
        ("trigger RENAME COLUMN arguments TO words", "its table `trigger` has no column `arguments`"),
        ("trigger ADD COLUMN colour TEXT", None),
    ],
)
def test_nothing_is_started_on_tables_that_are_not_the_right_ones(prepared_url, tmp_path, change, difference):
    parts = Parts.open(load_settings(tmp_path, {}), prepared_url)
    parts.store.transact(lambda tx: tx.execute(text(f"ALTER TABLE {change}")))
    server = Quiet()
    serving = Serving(parts, [server])
    with nullcontext() if difference is None else pytest.raises(SchemaError, match=difference):
        serving.start()
    assert server.is_started == (difference is None)
    if server.is_started:
        serving.stop()
    parts.store.dispose()
