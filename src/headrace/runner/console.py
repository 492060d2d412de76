"""What a task process prints and logs: plain lines on its output, which the supervisor copies to the try's log."""

from __future__ import annotations

import io
import logging
import sys
from os import close, dup2

from headrace.handoff import Console


def set_up_console() -> None:
    """Log to standard error at INFO, and show printed lines when they are complete, not when a buffer is full."""
    root = logging.getLogger()
    root.addHandler(Console())
    root.setLevel(logging.INFO)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", line_buffering=True, errors="backslashreplace")


def redirect(descriptor: int) -> None:
    """Send this process's output, and that of the programs it starts, to this descriptor."""
    dup2(descriptor, 1)
    dup2(descriptor, 2)
    close(descriptor)


def flush_console() -> None:
    """Hand over what is still in the buffers of `print`."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (AttributeError, OSError, ValueError):
            # User code closed or replaced the stream: then there is nothing of it left to save.
            continue
