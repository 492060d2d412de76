"""A forked child as the executor sees it, and the try that it works on."""

from __future__ import annotations

import os
import signal
import socket
from typing import Literal

from headrace.executor.connection import Connection
from headrace.handoff import FromTask, TaskRequest
from headrace.logs import LogStream, Masker, MaskingRules

StopReason = Literal["cancel", "timeout", "oversize", "halt"]
"""`halt`: by another thread than the executor's own, which sees to the end of it, too."""


class Try:
    """One request from its submission to its result."""

    __slots__ = ("masker", "request", "started_at", "stop_reason", "stream", "worker")

    def __init__(self, request: TaskRequest, rules: MaskingRules) -> None:
        self.request = request
        self.masker = Masker(rules=rules)
        self.worker: Worker | None = None
        self.stream: LogStream | None = None
        self.started_at = 0.0
        self.stop_reason: StopReason | None = None

    @property
    def key(self) -> tuple[int, int]:
        return (self.request.task_id, self.request.fence)

    def may_get(self, number: signal.Signals) -> bool:
        """Whether its process may be sent this signal: SIGTERM once, and SIGKILL only after it."""
        return (self.stop_reason is None) == (number == signal.SIGTERM)


class Worker:
    """One child: its process group, its socket, the pipe with its output."""

    __slots__ = ("connection", "current", "first_resident_bytes", "is_leaving", "output", "pid", "served")

    def __init__(self, pid: int, sock: socket.socket, output: int, limit_bytes: int) -> None:
        os.set_blocking(output, False)
        self.pid = pid
        self.output = output
        self.connection: Connection[FromTask] = Connection(sock, FromTask, limit_bytes)
        self.current: Try | None = None
        self.is_leaving = False
        self.served = 0
        self.first_resident_bytes = 0

    @property
    def is_closed(self) -> bool:
        """Whether the executor has let go of it."""
        return self.output < 0

    @property
    def exit_key(self) -> tuple[str, int]:
        """Names the deadline by which it must be gone."""
        return ("exit", self.pid)

    def close(self) -> None:
        """Let go of it: an idle child leaves when its socket closes."""
        if not self.is_closed:
            self.connection.close()
            os.close(self.output)
            self.output = -1

    def resident_bytes(self) -> int:
        """How much memory it holds; 0 where the system does not tell."""
        try:
            with open(f"/proc/{self.pid}/statm", "rb") as file:
                return int(file.read().split()[1]) * 4096
        except (OSError, IndexError, ValueError):
            return 0

    def has_grown_by(self, limit_bytes: int) -> bool:
        """Whether it takes much more memory than after its first try. Looks only now and then."""
        if self.served == 1:
            self.first_resident_bytes = self.resident_bytes()
        elif self.served % 10 == 0:
            return self.resident_bytes() - self.first_resident_bytes > limit_bytes
        return False


def signal_group(pid: int, number: signal.Signals) -> None:
    """Signal a child with everything in its process group; a child that is gone does not matter."""
    try:
        os.killpg(pid, number)
    except ProcessLookupError:
        # Just forked and not yet the leader of a group of its own, or gone.
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            return
    except PermissionError:
        return
