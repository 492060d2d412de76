"""A loop that ends by a mistake of ours takes its process with it: half of one would keep its leases for ever."""

from __future__ import annotations

import subprocess
import sys

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
