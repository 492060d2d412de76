"""Programs that tasks start: in the task's process group, so that whatever stops the task stops them, too."""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any

_RESTORED = (signal.SIGPIPE, signal.SIGXFSZ)
"""Python ignores these signals. Other programs expect to be ended by them."""
_LONGEST_PAUSE_SECONDS = 0.05


class Program:
    """A program with nothing to read, that prints where this process prints, or into `output`.

    `subprocess` can do more, and makes a fresh task process copy 60 pages for that.
    """

    def __init__(
        self, command: list[str], folder: str | Path, environment: Mapping[str, str], output: int | None = None
    ) -> None:
        self._code: int | None = None
        descriptors: list[tuple[Any, ...]] = [(os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0)]
        if output is not None:
            descriptors += [(os.POSIX_SPAWN_DUP2, output, 1), (os.POSIX_SPAWN_DUP2, output, 2)]
        with _inside(folder):
            program = _found(command[0], environment)
            self.pid = os.posix_spawn(program, command, environment, file_actions=descriptors, setsigdef=_RESTORED)

    def wait(self) -> int:
        """Its exit code, once it has ended; the negative number of the signal that ended it."""
        if self._code is None:
            self._take(0)
        return self._code or 0

    def wait_for(self, seconds: float) -> bool:
        """Whether it ends within so many seconds."""
        until, pause = time.monotonic() + seconds, 0.0005
        while not self.has_ended and time.monotonic() < until:
            time.sleep(pause)
            pause = min(pause * 2, _LONGEST_PAUSE_SECONDS)
        return self.has_ended

    @property
    def has_ended(self) -> bool:
        if self._code is None:
            self._take(os.WNOHANG)
        return self._code is not None

    def send(self, number: signal.Signals) -> None:
        """Signal it, unless it has ended."""
        if not self.has_ended:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def _take(self, options: int) -> None:
        try:
            pid, status = os.waitpid(self.pid, options)
        except ChildProcessError:
            # Somebody else waited for it, or user code has the system forget the ends of processes.
            self._code = 0
            return
        if pid != 0:
            self._code = os.waitstatus_to_exitcode(status)


def start_with_pipe(
    command: list[str], folder: str | Path, environment: Mapping[str, str]
) -> tuple[Program, IO[bytes]]:
    """A program, and what it and those that it starts print."""
    reading, writing = os.pipe()
    output = open(reading, "rb", buffering=0)
    try:
        return Program(command, folder, environment, writing), output
    except BaseException:
        output.close()
        raise
    finally:
        os.close(writing)


@contextlib.contextmanager
def _inside(folder: str | Path) -> Iterator[None]:
    """Like `contextlib.chdir`, also for a process whose own folder has been deleted or may not be read."""
    before = os.open(os.curdir, getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.chdir(folder)
        yield
    finally:
        os.fchdir(before)
        os.close(before)


def _found(program: str, environment: Mapping[str, str]) -> str:
    """Where a program is, on the path that it will have itself."""
    if "/" in program:
        return program
    for folder in os.get_exec_path(environment):
        path = os.path.join(folder, program)
        if os.access(path, os.X_OK) and not os.path.isdir(path):
            return path
    raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), program)
