"""What a task process prints and logs: plain lines on its output, which the supervisor copies to the try's log."""

from __future__ import annotations

import io
import logging
import os
import sys

from headrace.handoff import LineFormatter, line_of


class _StandardError(logging.StreamHandler[io.TextIOBase]):
    """Writes to what `sys.stderr` is at the moment, so that a redirection in user code is respected."""

    def __init__(self) -> None:
        logging.Handler.__init__(self)
        self.setFormatter(LineFormatter())

    @property
    def stream(self) -> io.TextIOBase:  # type: ignore[override]
        return sys.stderr  # type: ignore[return-value]


_console = _StandardError()


def set_up_console() -> None:
    """Log to standard error at INFO, and show printed lines when they are complete, not when a buffer is full."""
    root = logging.getLogger()
    root.addHandler(_console)
    root.setLevel(logging.INFO)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", line_buffering=True, errors="backslashreplace")


def say(log: logging.Logger, text: str) -> None:
    """Log one line at INFO, for what every task says: all of `logging` is a hundred pages for a new process to copy."""
    if log.root.handlers != [_console] or not log.isEnabledFor(logging.INFO):
        log.info("%s", text)
        return
    try:
        _console.stream.write(f"{line_of('INFO', log.name, text)}\n")
    except (AttributeError, OSError, ValueError):
        return  # user code closed or replaced the stream


def redirect(descriptor: int) -> None:
    """Send this process's output, and that of the programs it starts, to this descriptor."""
    os.dup2(descriptor, 1)
    os.dup2(descriptor, 2)
    os.close(descriptor)


def flush_console() -> None:
    """Hand over what is still in the buffers of `print`."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (AttributeError, OSError, ValueError):
            # User code closed or replaced the stream: then there is nothing of it left to save.
            continue
