"""Copies the output of running tries into their log files, on one thread for all of them.

The thread keeps a task from blocking on a full pipe while the supervisor is busy. When a try ends, the supervisor
drains the pipe itself: no hand-over between threads is in the way of the result.
"""

from __future__ import annotations

import fcntl
import os
import selectors
import socket
import struct
import termios
from threading import Lock, Thread

from headrace.logs.masking import Masker
from headrace.logs.writing import LogFile, Output

_CHUNK = 65_536


class LogStream:
    """The output of one try on its way from a pipe to a file."""

    def __init__(self, descriptor: int, path: str, masker: Masker, output: Output | None = None) -> None:
        self.descriptor = descriptor
        self.masker = masker
        self._file = LogFile(path, masker, output)
        self._lock = Lock()
        self._is_open = True
        self._ends_a_line = True

    @property
    def lost_bytes(self) -> int:
        """How much of the output is not in the file because the file could not be written."""
        return self._file.lost_bytes

    def copy_some(self) -> bool:
        """Copy one chunk. False: the stream is finished, or nobody can write to the pipe any more."""
        with self._lock:
            if not self._is_open:
                return False
            data = _read(self.descriptor, _CHUNK)
            if data:
                self._write(data)
            return data != b""

    def finish(self, last_words: bytes = b"") -> None:
        """Copy everything that is in the pipe now and these lines, and close the file. The pipe stays open."""
        with self._lock:
            if not self._is_open:
                return
            self._is_open = False
            # Only what was written so far: a stray process that goes on writing must not keep us here.
            waiting = _waiting_bytes(self.descriptor)
            while waiting > 0 and (data := _read(self.descriptor, min(waiting, _CHUNK))):
                self._write(data)
                waiting -= len(data)
            if last_words:
                self._write(last_words if self._ends_a_line else b"\n" + last_words)
            self._file.close()

    def _write(self, data: bytes) -> None:
        self._file.write(data)
        self._ends_a_line = data.endswith(b"\n")


class LogPump:
    """Starts, serves and finishes streams. `start` and `finish` are called by one thread, the supervisor's."""

    def __init__(self, output: Output | None = None) -> None:
        """`output` is told what goes into the files, too."""
        self._output = output
        self._selector = selectors.DefaultSelector()
        self._ours, self._theirs = socket.socketpair()
        self._selector.register(self._theirs, selectors.EVENT_READ)
        self._thread: Thread | None = None

    def start(self, descriptor: int, path: str, masker: Masker) -> LogStream:
        """Copy what comes out of this non-blocking pipe to this file from now on. An empty path throws it away."""
        if self._thread is None:
            self._thread = Thread(target=self._run, name="headrace-logs", daemon=True)
            self._thread.start()
        _discard(descriptor)
        stream = LogStream(descriptor, path, masker, self._output)
        self._selector.register(descriptor, selectors.EVENT_READ, stream)
        return stream

    def finish(self, stream: LogStream, last_words: bytes = b"") -> None:
        """Return when everything that was written so far is in the file, followed by the last words, if there are any.

        The pipe may serve another stream then.
        """
        self._forget(stream)
        stream.finish(last_words)

    def close(self) -> None:
        """End the thread. Streams that are still open keep what they have written."""
        self._ours.close()
        if self._thread is not None:
            self._thread.join()
        self._theirs.close()
        self._selector.close()

    def _run(self) -> None:
        while True:
            for key, _ in self._selector.select():
                if key.fileobj is self._theirs:
                    return
                stream: LogStream = key.data
                if not stream.copy_some():
                    self._forget(stream)

    def _forget(self, stream: LogStream) -> None:
        try:
            if self._selector.get_key(stream.descriptor).data is stream:
                self._selector.unregister(stream.descriptor)
        except (KeyError, ValueError):
            # The other thread was first: a pipe at its end is forgotten by the pump and by the supervisor.
            return


def _read(descriptor: int, size: int) -> bytes | None:
    """b"": the end of the pipe · None: nothing there at present."""
    try:
        return os.read(descriptor, size)
    except BlockingIOError:
        return None


def _waiting_bytes(descriptor: int) -> int:
    return int(struct.unpack("i", fcntl.ioctl(descriptor, termios.FIONREAD, b"\0\0\0\0"))[0])


def _discard(descriptor: int) -> None:
    """Throw away what a process wrote between two tries: it belongs to neither log."""
    waiting = _waiting_bytes(descriptor)
    while waiting > 0 and (data := _read(descriptor, min(waiting, _CHUNK))):
        waiting -= len(data)
