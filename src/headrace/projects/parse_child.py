"""The process in which workflow files are loaded, started as `python -m headrace.projects.parse_child FD LOADER`.

It is a warm parent: what files of a language need is imported once, and each file is loaded in a fork with limits and a
session of its own. It lives as long as its control socket: when the other side is gone, it kills what it started and
ends.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import select
import signal
import socket
import sys
import time
from pathlib import Path
from typing import NoReturn

import msgspec

from headrace.authoring import language_of
from headrace.errors import LoadError
from headrace.handoff import KEPT_BYTES, Answer, Ask, Reader, content_digest, send
from headrace.projects.outcome import MAX_OUTCOME_BYTES, ParseReply, ParseRequest
from headrace.projects.parse_fork import Loader, Pipes, complete_outcome, live

# What many files of a language import, by name: imported once here instead of in each fork. A fork imports whatever is
# missing.
_WARM_MODULES = {
    "python": (
        "headrace.compat.airflow",
        "headrace.operators.bash",
        "headrace.operators.empty",
        "headrace.operators.python",
        "pendulum",
    )
}
_OUTPUT_BYTES = 8_192
_TRACE_BYTES = 65_536
_READ_BYTES = 1_048_576
# The fork stops itself and says where it was; its parent steps in this much later.
_GRACE_SECONDS = 1.0
# How often to look whether a fork has ended whose pipes are held open by a process that it left behind.
_LOOK_MILLISECONDS = 100


class _Stopped(Exception):
    """The other side of the control socket is gone."""


class _Stream:
    """The reading end of a pipe from the fork; of much data only the beginning and the end are kept."""

    def __init__(self, reader: int, limit: int) -> None:
        self.reader = reader
        self.data = bytearray()
        self.total = 0
        self._half = limit // 2
        os.set_blocking(reader, False)

    def take(self) -> bool:
        """Read what is there. False: the other end is closed."""
        try:
            data = os.read(self.reader, _READ_BYTES)
        except BlockingIOError:
            return True
        self.total += len(data)
        self.data += data
        if len(self.data) > 4 * self._half:
            del self.data[self._half : -self._half]
        return bool(data)

    def text(self) -> str:
        if self.total > 2 * self._half:
            return (self.data[: self._half] + b"\n[...]\n" + self.data[-self._half :]).decode(errors="replace")
        return self.data.decode(errors="replace")


class _Watch:
    """One fork, from its start to its end."""

    def __init__(self, request: ParseRequest, content: bytes, control: socket.socket, loader: Loader) -> None:
        self._started = time.monotonic()
        self._deadline = self._started + request.timeout_seconds + _GRACE_SECONDS
        self._control = control
        readers, writers = zip(*(os.pipe() for _ in Pipes._fields), strict=True)
        self._questions, theirs = socket.socketpair()
        self._pid = os.fork()
        if self._pid == 0:
            for descriptor in (control.fileno(), self._questions.fileno(), *readers):
                os.close(descriptor)
            live(request, content, loader, Pipes(*writers), theirs)
        theirs.close()
        self._asked: Reader[Ask] = Reader(Ask)
        for writer in writers:
            os.close(writer)
        self._result = _Stream(readers[0], 2 * MAX_OUTCOME_BYTES)
        self._output = _Stream(readers[1], _OUTPUT_BYTES)
        self._trace = _Stream(readers[2], _TRACE_BYTES)
        self._streams = (self._result, self._output, self._trace)

    def wait(self) -> ParseReply:
        """Read until the fork has ended, its time is up or it says too much; nothing of it runs afterwards."""
        try:
            is_in_time = self._read_until_end()
        finally:
            exit_code = self._end()
            for stream in self._streams:
                # What it wrote just before it ended; nobody adds to it any more.
                stream.take()
                os.close(stream.reader)
            self._questions.close()
        trace = self._trace.text()
        is_too_large = self._result.total > MAX_OUTCOME_BYTES
        return ParseReply(
            outcome=msgspec.Raw(complete_outcome(self._result.data) if not is_too_large else b"null"),
            exit_code=exit_code,
            is_timeout=not is_in_time or trace.startswith("Timeout"),
            is_too_large=is_too_large,
            output=self._output.text(),
            trace=trace,
            seconds=round(time.monotonic() - self._started, 4),
        )

    def _read_until_end(self) -> bool:
        """False: the time is up."""
        poller = select.poll()
        # Nothing is awaited from the other side but its end, which is always reported.
        poller.register(self._control, 0)
        open_streams = {stream.reader: stream for stream in self._streams}
        for reader in open_streams:
            poller.register(reader, select.POLLIN)
        poller.register(self._questions, select.POLLIN)
        while open_streams or not self._has_ended():
            # With all pipes closed it is about to end, or has become another program.
            for descriptor, _ in poller.poll(_LOOK_MILLISECONDS if open_streams else 1):
                if descriptor == self._control.fileno():
                    raise _Stopped
                if descriptor == self._questions.fileno():
                    if not self._relay():
                        poller.unregister(descriptor)
                    continue
                if not open_streams[descriptor].take():
                    poller.unregister(descriptor)
                    del open_streams[descriptor]
            if self._result.total > MAX_OUTCOME_BYTES or self._has_left_the_rest_behind(open_streams):
                return True
            if time.monotonic() > self._deadline:
                return False
        return True

    def _relay(self) -> bool:
        """Pass a question on, and its answer back. False: there will be no more."""
        data = self._questions.recv(_READ_BYTES)
        for ask in self._asked.feed(data):
            send(self._control, ask)
            answer = Reader[Answer](Answer).receive(self._control)
            if answer is None:
                raise _Stopped
            with contextlib.suppress(ConnectionError):
                send(self._questions, answer)
        return bool(data)

    def _has_left_the_rest_behind(self, open_streams: dict[int, _Stream]) -> bool:
        """Whether it has ended and said all, and only a process of its own making still holds a pipe."""
        if not self._has_ended():
            return False
        poller = select.poll()
        for reader in open_streams:
            poller.register(reader, select.POLLIN)
        return all(descriptor == self._output.reader for descriptor, _ in poller.poll(0))

    def _has_ended(self) -> bool:
        return os.waitid(os.P_PID, self._pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None

    def _end(self) -> int:
        """Kill the fork's group, then reap it: until then its number cannot belong to anybody else."""
        for kill in (os.killpg, os.kill):
            # There is no group yet if the fork was stopped before it made one.
            with contextlib.suppress(ProcessLookupError, PermissionError):
                kill(self._pid, signal.SIGKILL)
        _, status = os.waitpid(self._pid, 0)
        return os.waitstatus_to_exitcode(status)


class _Warmth:
    """What this process has imported for the files of each language."""

    def __init__(self) -> None:
        self._levels: dict[str, int] = {}

    def warm_up_for(self, file: str) -> None:
        """Import the language before its first file, and before its second what only many files are worth."""
        try:
            language = language_of(file)
        except LoadError:
            return  # the fork reports it
        levels = ((language.loader.partition(":")[0],), _WARM_MODULES.get(language.name, ()))
        level = self._levels.get(language.name, 0)
        if level < len(levels):
            self._levels[language.name] = level + 1
            _import_all(levels[level])


def _import_all(names: tuple[str, ...]) -> None:
    gc.disable()  # next to nothing of what is imported is garbage
    for name in names:
        # What cannot be imported is reported by the files that need it.
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    # Forks need not look at it either, and thereby copy it.
    gc.freeze()
    gc.enable()


def main() -> NoReturn:
    """Serve parse requests on the control socket until it closes."""
    control = socket.socket(fileno=int(sys.argv[1]))
    control.set_inheritable(False)
    # Only the other side decides when this process ends; Ctrl-C reaches everything in the terminal.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    loader, warmth = _find_loader(sys.argv[2]), _Warmth()
    reader: Reader[ParseRequest] = Reader(ParseRequest)
    with contextlib.suppress(_Stopped, ConnectionError):
        while (request := reader.receive(control)) is not None:
            warmth.warm_up_for(request.file)
            send(control, _parse(request, control, loader))
    # Somebody waits for this end, and nothing is left to be done before it.
    os._exit(0)


def _find_loader(name: str) -> Loader:
    module, _, function = name.partition(":")
    loader: Loader = getattr(importlib.import_module(module), function)
    return loader


def _parse(request: ParseRequest, control: socket.socket, loader: Loader) -> ParseReply:
    try:
        content = Path(request.root, request.file).read_bytes()
    except OSError as error:
        return ParseReply(unreadable=error.strerror or str(error))
    reply = _Watch(request, content, control, loader).wait()
    kept = content if len(content) <= KEPT_BYTES else None
    return msgspec.structs.replace(reply, digest=content_digest(content), content=kept)


if __name__ == "__main__":
    main()
