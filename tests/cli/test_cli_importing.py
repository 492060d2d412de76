"""What a command imports is never looked through for garbage, unless the process has other things to do, too."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

PROGRAM = """
import gc, json
from headrace.cli.importing import imports
if {is_own}:
    imports.keep()
before = gc.get_stats()[0]["collections"]
imports.take("headrace.cli.commands.runs")
print(json.dumps([gc.get_stats()[0]["collections"] > before, gc.get_freeze_count() > 10_000, gc.isenabled()]))
"""


@pytest.mark.parametrize(("is_own", "expected"), [(True, [False, True, True]), (False, [True, False, True])])
def test_imports_of_a_process_of_its_own_are_kept(is_own, expected):
    command = [sys.executable, "-c", PROGRAM.format(is_own=is_own)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert json.loads(done.stdout) == expected
