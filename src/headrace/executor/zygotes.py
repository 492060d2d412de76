"""A warm parent process as the executor sees it: its children at rest, and the tries that wait for one."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from collections import deque

from headrace.executor.connection import DescriptorConnection
from headrace.executor.options import LocalOptions, Program
from headrace.executor.workers import Try, Worker
from headrace.handoff import Fork, FromZygote, Load, Source
from headrace.logs import Masker

_OUTPUT_TAIL_BYTES = 16_384
_PIPE_BYTES = 1_048_576
_DEMAND_SECONDS = 1.0

ZygoteKey = tuple[str, str, str, str]


def zygote_key(source: Source) -> ZygoteKey:
    """Sources with the same key share a warm parent."""
    return (source.root, source.file, source.revision, source.language)


class Zygote:
    """One revision of one file, loaded and ready to be forked."""

    def __init__(self, source: Source, content: bytes | None, program: Program | None, options: LocalOptions) -> None:
        self.source = source
        self.key = zygote_key(source)
        self.masker = Masker(rules=options.masking)
        """Secrets that the file asked for while it was loaded; every task of it may print them."""
        self.is_loaded = False
        self.has_forked = False
        self.used_at = time.monotonic()
        self.waiting: deque[Try] = deque()
        self.children: dict[int, Worker] = {}
        self.idle: list[Worker] = []
        """Children that served a try and may serve another."""
        self.spares: deque[Worker] = deque()
        """Children that served nothing yet."""
        self._forking = 0
        self._demand: deque[float] = deque(maxlen=options.max_spares)
        self._options = options
        self._launch(program, content)

    def _launch(self, program: Program | None, content: bytes | None) -> None:
        ours, theirs = socket.socketpair()
        output_read, output_write = os.pipe()
        with theirs:
            try:
                self.process = subprocess.Popen(
                    [self._options.python, "-P", "-m", "headrace.runner.start_zygote", str(theirs.fileno())],
                    pass_fds=[theirs.fileno()],
                    stdin=subprocess.DEVNULL,
                    stdout=output_write,
                    stderr=output_write,
                    start_new_session=True,
                    env=self._options.environment,
                )
            except BaseException:
                ours.close()
                os.close(output_read)
                raise
            finally:
                os.close(output_write)
        os.set_blocking(output_read, False)
        self.output = output_read
        self._output_tail = b""
        self.control: DescriptorConnection[FromZygote] = DescriptorConnection(
            ours, FromZygote, self._options.limit_bytes
        )
        loader, runner = program or ("", "")
        limit = self._options.limit_bytes
        self.control.send(Load(source=self.source, loader=loader, runner=runner, limit_bytes=limit, content=content))

    @property
    def is_busy(self) -> bool:
        return bool(self.waiting) or any(worker.current is not None for worker in self.children.values())

    def take(self, may_reuse: bool) -> Worker | None:
        """A child at rest, or None."""
        if may_reuse and self.idle:
            return self.idle.pop()
        if not self.spares:
            return None
        self._demand.append(time.monotonic())
        return self.spares.popleft()

    def adopt(self, worker: Worker) -> None:
        """A child that was asked for has arrived."""
        self._forking -= 1
        self.has_forked = True
        self.children[worker.pid] = worker
        self.spares.append(worker)

    def forks_failed(self, count: int) -> None:
        self._forking -= count

    def order_children(self, slots: int, is_crowded: bool) -> None:
        """Ask for the children that waiting tries need, and for as many spares as were lately taken."""
        now = time.monotonic()
        while self._demand and self._demand[0] < now - _DEMAND_SECONDS:
            self._demand.popleft()
        wanted = len(self.waiting) + min(slots, max(1, len(self._demand)))
        missing = wanted - len(self.spares) - self._forking
        if missing > 0:
            self._forking += missing
            self.control.send(Fork(count=missing, has_time=not (is_crowded or self.waiting)))

    def forget(self, worker: Worker) -> None:
        """Do not give this child any work again."""
        if worker in self.idle:
            self.idle.remove(worker)
        if worker in self.spares:
            self.spares.remove(worker)

    def read_output(self) -> bool | None:
        """Keep the end of what the parent itself printed. False: there will be no more · None: none at present."""
        try:
            data = os.read(self.output, _OUTPUT_TAIL_BYTES)
        except BlockingIOError:
            return None
        self._output_tail = (self._output_tail + data)[-_OUTPUT_TAIL_BYTES:]
        return bool(data)

    def output_text(self) -> str:
        """What was printed while loading, at least its end."""
        # A pipe holds no more than a megabyte; a stray program that goes on printing must not keep us here.
        for _ in range(_PIPE_BYTES // _OUTPUT_TAIL_BYTES):
            if not self.read_output():
                break
        return self._output_tail.decode(errors="replace")

    def close(self) -> None:
        """Let go of the process and of all children: the parent kills them when its control socket closes."""
        self.control.close()
        os.close(self.output)
        for worker in self.children.values():
            worker.close()

    def kill(self) -> int:
        """Make sure that the process is gone; how it ended, negative for a signal."""
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            pass
        return self.process.wait()
