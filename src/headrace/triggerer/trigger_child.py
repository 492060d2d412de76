"""The process of triggers as the triggerer sees it: started when there is a first trigger, ended when there is none."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial

from headrace.executor.connection import Connection, OversizeError
from headrace.executor.loop import Loop
from headrace.handoff import MESSAGE_LIMIT_BYTES, FromTriggers, ToTriggers
from headrace.user_environment import environment_of_user_code

_PROGRAM = "headrace.runner.trigger_process"
_SETTLED_SECONDS = 60.0
"""A process that lived so long did not die of what it was given to run."""
_LAST_WORDS_SECONDS = 0.5
"""What one that is gone already has said before is there to be heard."""
_FIRST_PAUSE_SECONDS = 1.0
_LONGEST_PAUSE_SECONDS = 60.0


class TriggerChild:
    """At most one process at a time. `on_message` hears what it says, `on_exit` how it ended if nobody asked it to."""

    def __init__(
        self,
        loop: Loop,
        on_message: Callable[[FromTriggers], None],
        on_exit: Callable[[int], None],
        stuck_seconds: float,
    ) -> None:
        self._loop = loop
        self._stuck_seconds = stuck_seconds
        self._on_message = on_message
        self._on_exit = on_exit
        self._process: subprocess.Popen[bytes] | None = None
        self._leaving: subprocess.Popen[bytes] | None = None
        """One that was asked to leave and has not left yet."""
        self._connection: Connection[FromTriggers] | None = None
        self._started_at = 0.0
        self._deaths = 0
        self._may_start_at = 0.0

    @property
    def is_running(self) -> bool:
        return self._process is not None

    @property
    def pid(self) -> int | None:
        return None if self._process is None else self._process.pid

    @property
    def pause_seconds(self) -> float:
        """How long until it may be started again; one that keeps dying is not started in haste."""
        return max(0.0, self._may_start_at - time.monotonic())

    def start(self) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", _PROGRAM, str(theirs.fileno()), str(self._stuck_seconds)],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=2,
                start_new_session=True,
                env=environment_of_user_code(os.environ),
            )
        self._connection = Connection(ours, FromTriggers, MESSAGE_LIMIT_BYTES)
        self._started_at = time.monotonic()
        self._loop.watch_connection(self._connection, partial(self._hear, self._connection))

    def send(self, message: ToTriggers) -> None:
        """Say something; a process that is gone is noticed elsewhere."""
        if self._connection is not None:
            self._connection.send(message)
            self._loop.update(self._connection)

    def halt(self, number: signal.Signals) -> bool:
        """SIGTERM: have it clean up and leave; SIGKILL: kill it. Whether there was one. Any thread may call it."""
        process, connection = self._process or self._leaving, self._connection
        if process is None or connection is None or process.poll() is not None:
            return False
        try:
            if number == signal.SIGTERM:
                connection.socket.shutdown(socket.SHUT_WR)
            else:
                os.killpg(process.pid, number)
        except OSError:
            return False  # gone already
        return True

    def stop(self, grace_seconds: float) -> None:
        """Have it clean up and leave. What it says until then is heard."""
        if self._process is None or self._connection is None:
            return
        process, connection = self._process, self._connection
        self._process, self._leaving = None, process
        try:
            connection.socket.shutdown(socket.SHUT_WR)
        except OSError:
            grace_seconds = _LAST_WORDS_SECONDS
        until = time.monotonic() + grace_seconds
        while not connection.is_closed and (left := until - time.monotonic()) > 0:
            self._loop.step(left)
        self._let_go(connection)
        _kill(process)
        self._leaving = None

    def _hear(self, connection: Connection[FromTriggers]) -> None:
        try:
            for message in connection.receive():
                self._on_message(message)
        except OversizeError:
            connection.is_closed = True
        if connection.is_closed:
            self._loop.forget(connection.socket)
            if self._process is not None and connection is self._connection:
                self._has_died(self._process, connection)

    def _has_died(self, process: subprocess.Popen[bytes], connection: Connection[FromTriggers]) -> None:
        lived_seconds = time.monotonic() - self._started_at
        self._deaths = 0 if lived_seconds > _SETTLED_SECONDS else self._deaths + 1
        pause = min(_LONGEST_PAUSE_SECONDS, _FIRST_PAUSE_SECONDS * 2.0 ** (self._deaths - 1))
        self._may_start_at = time.monotonic() + (pause if self._deaths else 0.0)
        self._process = None
        self._let_go(connection)
        self._on_exit(_kill(process))

    def _let_go(self, connection: Connection[FromTriggers]) -> None:
        self._loop.forget(connection.socket)
        connection.close()
        self._connection = None


def _kill(process: subprocess.Popen[bytes]) -> int:
    """Make sure that it is gone, with everything that it started; how it ended."""
    try:
        code = process.wait(1.0)
    except subprocess.TimeoutExpired:
        code = None
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        pass
    return process.wait() if code is None else code
