"""Lets a connection's hook try it. Hooks are other people's code, so that happens in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

_PROGRAM = "headrace.runner.connection_test"
_SECONDS = 60.0


def try_connection(fields: Mapping[str, Any]) -> tuple[bool, str]:
    """Whether the connection works, and a sentence about it."""
    try:
        done = subprocess.run(
            [sys.executable, "-P", "-m", _PROGRAM],
            input=json.dumps(dict(fields)),
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return False, f"there was no answer within {_SECONDS:.0f} s"
    try:
        answer = json.loads(done.stdout.splitlines()[-1])
        return bool(answer["is_reachable"]), str(answer["message"])
    except (IndexError, KeyError, ValueError):
        return False, f"its hook ended with code {done.returncode}: {done.stderr.strip()[-500:]}"
