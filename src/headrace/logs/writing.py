"""One try's log file: secrets masked, and a full disk is the log's trouble, not the task's."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from pathlib import Path

from headrace.logs.masking import Masker

_FILE_MODE = 0o640
_FOLDER_MODE = 0o750

Output = Callable[[str, bytes], None]
"""Is called with the path of a log and what is added to it, masked; with nothing when the log is closed."""

log = logging.getLogger("headrace.logs")


class LogFile:
    """Takes bytes, never raises for what the file system does. `lost_bytes` counts what could not be written.

    The file is made with its first byte: making one costs more than running a small task that has nothing to say. Where
    something is missing, it says so as soon as it can be written again.
    """

    def __init__(self, path: str, masker: Masker, output: Output | None = None) -> None:
        self.path = path
        self.masker = masker
        self._output = output
        self.lost_bytes = 0
        self._gap_bytes = 0
        """What was lost since the last time that something could be written."""
        self._reason = ""
        self._descriptor = -1

    def write(self, data: bytes) -> None:
        """Append what may be shown by now."""
        self._put(self.masker.mask(data))

    def close(self) -> None:
        """Append what the masker still holds back, and close the file. May be called twice."""
        self._put(self.masker.flush())
        if self._output is not None:
            self._output(self.path, b"")
        if self._gap_bytes:
            self._append(b"")
        if self._descriptor >= 0:
            descriptor, self._descriptor = self._descriptor, -1
            try:
                os.close(descriptor)
            except OSError as error:
                self._complain(error)

    def _put(self, data: bytes) -> None:
        if self.path and data:
            if self._output is not None:
                self._output(self.path, data)
            lost = self._append(data)
            self.lost_bytes += lost
            self._gap_bytes += lost

    def _append(self, data: bytes) -> int:
        """Write this, after a line about what is missing before it. How much of it could not be written."""
        gap = self._gap_line()
        rest = memoryview(gap + data)
        try:
            if self._descriptor < 0:
                self._descriptor = _open(self.path)
            while rest:
                rest = rest[os.write(self._descriptor, rest) :]
        except OSError as error:
            self._complain(error)
        lost = min(len(rest), len(data))
        if len(rest) <= len(data):
            self._gap_bytes = 0
        return lost

    def _gap_line(self) -> bytes:
        if not self._gap_bytes:
            return b""
        return f"\n[{self._gap_bytes} bytes of the log are missing here: {self._reason}]\n".encode()

    def _complain(self, error: OSError) -> None:
        if not self._reason:
            log.warning("could not write the log `%s`: %s; the task goes on without it", self.path, error.strerror)
        self._reason = error.strerror or type(error).__name__


def _open(path: str) -> int:
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
    try:
        return os.open(path, flags, _FILE_MODE)
    except FileNotFoundError:
        _make_folders(Path(path).parent)
        return os.open(path, flags, _FILE_MODE)


def _make_folders(folder: Path) -> None:
    """Like `mkdir -p`, but every new folder gets our mode, not only the last."""
    if not folder.is_dir():
        _make_folders(folder.parent)
        folder.mkdir(mode=_FOLDER_MODE, exist_ok=True)
