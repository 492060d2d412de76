"""Tells whether two processes see the same process ids, so that one can say that the other is dead."""

from __future__ import annotations

import os
import socket
from functools import cache
from pathlib import Path


@cache
def place() -> str:
    """The host, its boot and the process id namespace: equal only where a process id means the same."""
    boot = _read("/proc/sys/kernel/random/boot_id")
    try:
        namespace = os.readlink("/proc/self/ns/pid")
    except OSError:
        namespace = ""
    return f"{socket.gethostname()}/{boot}/{namespace}"


def is_child(pid: int, parent: int) -> bool:
    """Whether this process exists and was started by that one; where the system does not tell, whether it exists."""
    stat = _read(f"/proc/{pid}/stat")
    if not stat and not Path("/proc/self/stat").exists():
        return is_alive(pid)
    return stat.rpartition(")")[2].split()[1:2] == [str(parent)]


def is_alive(pid: int) -> bool:
    """Whether a process of this place exists."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    # A killed process that nobody has waited for yet still answers, but will never run again.
    stat = _read(f"/proc/{pid}/stat")
    return stat.rpartition(")")[2].split()[:1] != ["Z"]


def _read(path: str) -> str:
    try:
        return Path(path).read_text().strip()
    except OSError:
        return ""
