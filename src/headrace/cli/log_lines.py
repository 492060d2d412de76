"""Log lines of the command's own process: one form for all of them, on stderr or wherever a command wants them."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable

from headrace.handoff import LineFormatter

_OURS = "headrace"


class LogLines(logging.Handler):
    """Hands each line to `write`, which may be exchanged while the process works."""

    def __init__(self) -> None:
        super().__init__()
        self.setFormatter(LineFormatter())
        self.write: Callable[[str], object] = _to_stderr

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
    logging.getLogger(_OURS).setLevel(level)
    return handler


def _to_stderr(line: str) -> None:
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()
