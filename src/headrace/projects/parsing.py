"""Loads workflow files in child processes, so that nothing that a file does can hurt the caller.

Whatever happens (an exception, an endless loop, a crash, too much memory), every file gives one ParsedFile.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import socket
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Protocol

import msgspec

from headrace.authoring import SlotQuestion
from headrace.handoff import Answer, Ask, Reader, send
from headrace.metrics.catalogue import FILE_SECONDS, FILES_LOADED
from headrace.projects.outcome import ParsedFile, ParseReply, ParseRequest, hiding, parsed_file
from headrace.user_environment import environment_of_user_code

DEFAULT_LOADER = "headrace.authoring:load_file"


class Answers(Protocol):
    """Answers what files ask for while they are loaded, and keeps secrets in the answers out of what they print."""

    def __call__(self, ask: Ask) -> Answer: ...

    def hide(self, text: str) -> str: ...


# Starting and importing in the child, before and beside the time that a file itself may take.
_SPARE_SECONDS = 30.0
_RECEIVE_BYTES = 1_048_576


def parse_file(
    root: Path,
    file: str,
    *,
    timeout_seconds: float = 30.0,
    memory_mb: int = 2048,
    loader: str = DEFAULT_LOADER,
    answers: Answers | None = None,
) -> ParsedFile:
    """Load one file, given relative to the project's folder, in a child process."""
    with ParsePool(1, timeout_seconds=timeout_seconds, memory_mb=memory_mb, loader=loader, answers=answers) as pool:
        return next(pool.parse(root, [file]))


def parse_files(
    root: Path,
    files: Iterable[str],
    *,
    processes: int = 2,
    timeout_seconds: float = 30.0,
    memory_mb: int = 2048,
    loader: str = DEFAULT_LOADER,
) -> Iterator[ParsedFile]:
    """Load many files, several at a time. Results come as they are ready, in any order."""
    with ParsePool(processes, timeout_seconds=timeout_seconds, memory_mb=memory_mb, loader=loader) as pool:
        yield from pool.parse(root, files)


class _NoAnswers:
    """For files that nobody has answers for."""

    def __call__(self, ask: Ask) -> Answer:
        return Answer(id=ask.id, is_missing=ask.verb != "mask")

    def hide(self, text: str) -> str:
        return text


class ParsePool:
    """Warm parse processes that are kept between calls; they start when they are first needed.

    `loader` names the function that loads a file (`module:function`, called as `headrace.authoring.load_file`).
    `answers` has what files ask for while they are loaded.
    """

    def __init__(
        self,
        processes: int = 2,
        *,
        timeout_seconds: float = 30.0,
        memory_mb: int = 2048,
        loader: str = DEFAULT_LOADER,
        answers: Answers | None = None,
    ) -> None:
        self._answers = answers or _NoAnswers()
        self._processes = processes
        self._timeout_seconds = timeout_seconds
        self._memory_mb = memory_mb
        self._loader = loader
        self._idle: list[_Worker] = []

    def __enter__(self) -> ParsePool:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the processes."""
        while self._idle:
            self._idle.pop().close()

    def parse(self, root: Path, files: Iterable[str]) -> Iterator[ParsedFile]:
        """Load files of one project. Results come as they are ready; closing the iterator stops what still runs."""
        yield from self._parse([self._request(root, file) for file in reversed(list(files))])

    def ask(self, root: Path, file: str, question: SlotQuestion) -> ParsedFile:
        """Load one file and ask it something."""
        return next(self._parse([msgspec.structs.replace(self._request(root, file), question=question)]))

    def _parse(self, waiting: list[ParseRequest]) -> Iterator[ParsedFile]:
        with selectors.DefaultSelector() as selector:
            busy: set[_Worker] = set()
            try:
                while waiting or busy:
                    while waiting and len(busy) < self._processes:
                        worker = self._idle.pop() if self._idle else _Worker(self._loader, self._answers)
                        busy.add(worker)
                        selector.register(worker.socket, selectors.EVENT_READ, worker)
                        worker.start(waiting.pop())
                    for worker in _ready(selector, busy):
                        if worker.receive():
                            selector.unregister(worker.socket)
                            busy.discard(worker)
                            yield self._finish(worker)
            finally:
                for worker in busy:
                    worker.close()

    def _request(self, root: Path, file: str) -> ParseRequest:
        return ParseRequest(
            # The loaders resolve links as well, so that their line numbers can be found below this folder.
            root=str(root.resolve()),
            file=file,
            timeout_seconds=self._timeout_seconds,
            memory_mb=self._memory_mb,
        )

    def _finish(self, worker: _Worker) -> ParsedFile:
        result = worker.result()
        FILE_SECONDS.observe(time.monotonic() - worker.started_at)
        FILES_LOADED.add("error" if result.error is not None else "ok")
        if worker.is_alive:
            self._idle.append(worker)
        else:
            worker.close()
        return result


def _ready(selector: selectors.BaseSelector, busy: set[_Worker]) -> list[_Worker]:
    """The workers that have something to say, or whose time is up by far."""
    deadline = min(worker.deadline for worker in busy)
    ready = [key.data for key, _ in selector.select(max(0.0, deadline - time.monotonic()))]
    return ready or [worker for worker in busy if worker.deadline <= time.monotonic()]


class _Worker:
    """One parse process and the file that it has been given."""

    def __init__(self, loader: str, answers: Answers) -> None:
        self._answers = answers
        self.socket, theirs = socket.socketpair()
        self.is_alive = True
        self.started_at = 0.0
        self.deadline = 0.0
        self._reader: Reader[ParseReply | Ask] = Reader(ParseReply | Ask)
        self._request: ParseRequest | None = None
        self._reply: ParseReply | None = None
        with theirs:
            # -P: a file of the current folder must not stand in for a module that we import.
            command = [sys.executable, "-P", "-m", "headrace.projects.parse_child", str(theirs.fileno()), loader]
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                env=environment_of_user_code(os.environ),
            )

    def start(self, request: ParseRequest) -> None:
        self._request, self._reply = request, None
        self.started_at = time.monotonic()
        self.deadline = self.started_at + request.timeout_seconds + _SPARE_SECONDS
        # A process that has died in the meantime is noticed when its answer is read.
        with contextlib.suppress(ConnectionError):
            send(self.socket, request)

    def receive(self) -> bool:
        """Read what is there. True: the answer is complete, or will never come."""
        if self.deadline <= time.monotonic():
            self.is_alive = False
            return True
        try:
            data = self.socket.recv(_RECEIVE_BYTES)
        except ConnectionError:
            data = b""
        self.is_alive = bool(data)
        for message in self._reader.feed(data):
            if isinstance(message, ParseReply):
                self._reply = message
            else:
                # A process that has died in the meantime is noticed when its answer is read.
                with contextlib.suppress(ConnectionError):
                    send(self.socket, self._answers(message))
        return self._reply is not None or not data

    def result(self) -> ParsedFile:
        """The result of the present file, whether or not its process lived to tell."""
        assert self._request is not None
        return hiding(parsed_file(self._request, self._reply or ParseReply()), self._answers.hide)

    def close(self) -> None:
        # The process sees its socket close, kills the fork that it may have and ends.
        self.socket.close()
        try:
            self._process.wait(5.0)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
