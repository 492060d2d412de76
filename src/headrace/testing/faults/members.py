"""One real process of a cluster, with everything that it starts: signalled, watched, killed."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import psutil

GONE_SECONDS = 40.0
"""How long a process that was told to end may take before that is a mistake."""
_PR_SET_PDEATHSIG = 1
_ZYGOTE = "start_zygote"
_prctl = ctypes.CDLL(None).prctl


class Member:
    """A scheduler, an agent, a triggerer or a standalone server."""

    def __init__(self, name: str, kind: str, process: subprocess.Popen[bytes], stderr: Path) -> None:
        self.name = name
        self.kind = kind
        self.process = process
        self.pid = process.pid
        self._stderr = stderr

    @property
    def stderr(self) -> str:
        return self._stderr.read_text(errors="replace")

    @property
    def is_running(self) -> bool:
        return self.process.poll() is None

    def signal(self, number: signal.Signals) -> float:
        """Send a signal to this process alone; when that was, on the clock that all processes share."""
        at = time.monotonic()
        os.kill(self.pid, number)
        return at

    def kill(self) -> float:
        """Kill -9, and wait until it is gone; when the signal was sent."""
        at = self.signal(signal.SIGKILL)
        self.process.wait(GONE_SECONDS)
        return at

    def kill_tree(self) -> float:
        """Kill -9 of the process and of everything below it."""
        below = self.below()
        at = self.signal(signal.SIGKILL)
        for one in below:
            kill(one.pid)
        self.process.wait(GONE_SECONDS)
        return at

    def terminate(self) -> int:
        """Ask it to stop, and wait until it has; its exit code."""
        self.signal(signal.SIGTERM)
        return self.process.wait(GONE_SECONDS)

    def below(self) -> list[psutil.Process]:
        """Everything that it and its children have started."""
        return self._children(recursive=True)

    def children(self) -> list[psutil.Process]:
        """What it has started itself."""
        return self._children(recursive=False)

    def zygotes(self) -> list[int]:
        """Process ids of its warm parents."""
        return [one.pid for one in self.children() if module_of(one) == _ZYGOTE]

    def _children(self, *, recursive: bool) -> list[psutil.Process]:
        try:
            return psutil.Process(self.pid).children(recursive=recursive)
        except psutil.NoSuchProcess:
            return []


def kill(pid: int) -> float:
    """Kill -9 of any process, which may be gone already; when the signal was sent."""
    at = time.monotonic()
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    return at


def die_with_parent() -> Callable[[], None]:
    """What a child does before it becomes itself: have the kernel kill it when the starting process is gone."""
    parent = os.getpid()

    def ask_kernel() -> None:
        _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)

    return ask_kernel


def processes_with(variable: str) -> list[int]:
    """Everything whose environment has this `NAME=value`, whoever its parent is now."""
    mark = f"\0{variable}\0".encode()
    return [pid for pid in psutil.pids() if mark in _environment_of(pid)]


def _environment_of(pid: int) -> bytes:
    try:
        return b"\0" + Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return b""


def module_of(process: psutil.Process) -> str:
    """The last word of the module that Python was told to run, or nothing."""
    try:
        words = process.cmdline()
    except psutil.Error:
        return ""
    return words[words.index("-m") + 1].rpartition(".")[2] if "-m" in words[:-1] else ""
