"""What tasks print, on the standard output of `headrace run` while they run."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from threading import Lock

from headrace.handoff import FAILURE

_OURS = re.compile(rb"\d{4}-\d\d-\d\dT[\d:.]+Z [A-Z]+ headrace\.")
"""How the lines begin that the engine itself writes into a task's log."""
_FAILURE = re.compile(rb"\d{4}-\d\d-\d\dT[\d:.]+Z ERROR %s: " % re.escape(FAILURE.encode()))
"""What follows is not printed by the task either: it is told on standard error, once the run has ended."""
_LONGEST = 65_536
"""So much of a line is waited for; a longer one is shown in pieces."""


class TaskOutput:
    """Called with what is added to logs, by any thread; whole lines go on, those of different tasks side by side."""

    def __init__(self) -> None:
        self._begun: dict[str, bytes] = {}
        self._failed: set[str] = set()
        self._held: list[bytes] = []
        self._write: Callable[[bytes], None] = self._held.append
        self._lock = Lock()

    def __call__(self, log: str, data: bytes) -> None:
        """`data` was added to a log; without any, the log has ended."""
        with self._lock:
            text = self._begun.pop(log, b"") + data
            end = text.rfind(b"\n") + 1 if data else len(text)
            if len(text) - end <= _LONGEST:
                self._hold(log, text[end:])
                text = text[:end]
            shown = b"".join(
                line for line in self._printed(log, text).splitlines(keepends=True) if _OURS.match(line) is None
            )
            if not data:
                self._failed.discard(log)
            if shown:
                self._write(shown if data or shown.endswith(b"\n") else shown + b"\n")

    def _printed(self, log: str, text: bytes) -> bytes:
        """The beginning of the text, up to where it is told why the try failed."""
        if log in self._failed:
            return b""
        failure = _FAILURE.search(text)
        if failure is None:
            return text
        self._failed.add(log)
        printed = text[: failure.start()]
        return printed if printed.endswith(b"\n") or not printed else printed + b"\n"

    def _hold(self, log: str, text: bytes) -> None:
        if text:
            self._begun[log] = text

    def show_by(self, say: Callable[[str], None] | None) -> None:
        """From now on lines are shown, with those that came before; by `say` if they would spoil a live picture."""
        with self._lock:
            self._write = _to_stdout if say is None else lambda data: say(data.decode(errors="replace").rstrip("\n"))
            for data in self._held:
                self._write(data)


def _to_stdout(data: bytes) -> None:
    try:
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
    except (AttributeError, OSError, ValueError):
        return  # nobody reads it, or it was closed from the beginning: the logs have it all
