"""Log lines of the command's own process: one form for all of them, on stderr or wherever a command wants them."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from typing import Any

from headrace.handoff import LineFormatter

_OURS = "headrace"
_wanted: dict[str, Any] = {}
"""What was asked for on the command line, before any command knows what it shows by itself."""


def send_log_lines_to(*, path: str | None = None, level: int | None = None) -> None:
    """Show lines from another level on than the command would, or append them to a file."""
    if path is not None:
        _wanted["path"] = path
    if level is not None:
        _wanted["level"] = level


class LogLines(logging.Handler):
    """Hands each line to `write`, which may be exchanged while the process works."""

    def __init__(self) -> None:
        super().__init__()
        self.setFormatter(LineFormatter())
        self.write: Callable[[str], object] = _to_file if "path" in _wanted else _to_stderr

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self.write(self.format(record))
        except (OSError, ValueError):
            pass  # nobody reads stderr any more; that must not stop the work


def show_log_lines(level: int = logging.WARNING, *, without: tuple[str, ...] = ()) -> LogLines:
    """Show our lines from this level on, those of libraries if they are warnings, and none of the loggers `without`."""
    handler = LogLines()
    handler.addFilter(lambda record: not record.name.startswith(without))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    logging.getLogger(_OURS).setLevel(_wanted.get("level", level))
    return handler


def _to_file(line: str) -> None:
    with open(_wanted["path"], "a", encoding="utf-8") as file:
        file.write(f"{line}\n")


def _to_stderr(line: str) -> None:
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()
