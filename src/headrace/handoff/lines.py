"""The form of a log line, the same in every process that runs user code."""

from __future__ import annotations

import io
import logging
import sys
import time
from datetime import UTC, datetime

from headrace.handoff.messages import TaskError

FAILURE = "headrace.task"
"""Who says at the end of a log why the try failed, in a line of this name and those that follow it."""


class LineFormatter(logging.Formatter):
    """`2026-02-03T04:05:06.789Z INFO airflow.task: text`."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s.%(msecs)03dZ %(levelname)s %(name)s: %(message)s", "%Y-%m-%dT%H:%M:%S")
        self.converter = time.gmtime


class Console(logging.StreamHandler[io.TextIOBase]):
    """Writes to what `sys.stderr` is at the moment, so that a redirection in user code is respected."""

    def __init__(self) -> None:
        logging.Handler.__init__(self)
        self.setFormatter(LineFormatter())

    @property
    def stream(self) -> io.TextIOBase:  # type: ignore[override]
        return sys.stderr  # type: ignore[return-value]


_PASS_ON = logging.Logger.callHandlers


def say(log: logging.Logger, text: str, *args: object) -> None:
    """Log one line at INFO, for what every task says: all of `logging` is a hundred pages for a new process to copy."""
    if not _is_only_for_console(log):
        log.info(text, *args)
        return
    if not log.isEnabledFor(logging.INFO):
        return
    try:
        sys.stderr.write(f"{_line_of('INFO', log.name, text % args if args else text)}\n")
    except (AttributeError, OSError, ValueError):
        return  # user code closed or replaced the stream


def _is_only_for_console(log: logging.Logger) -> bool:
    """Whether nobody but an untouched console would see what is logged here, neither the record nor the line."""
    if len(log.root.handlers) != 1:
        return False
    console = log.root.handlers[0]
    if type(console) is not Console or console.filters or console.level or type(console.formatter) is not LineFormatter:
        return False
    if logging.getLogRecordFactory() is not logging.LogRecord or type(log).callHandlers is not _PASS_ON:
        return False
    logger: logging.Logger | None = log
    while logger is not None and logger is not log.root:
        if logger.handlers or logger.filters or not logger.propagate:
            return False
        logger = logger.parent
    return True


def _line_of(level: str, name: str, text: str) -> str:
    """The same line without a record."""
    now = datetime.now(UTC).isoformat(timespec="milliseconds").removesuffix("+00:00")
    return f"{now}Z {level} {name}: {text}"


def failure_line(error: TaskError) -> str:
    """How a log ends that tells why the try failed; a traceback makes several lines of it."""
    text = f"failed\n{error.traceback}" if error.traceback else f"{error.type}: {error.message}"
    return _line_of("ERROR", FAILURE, text.rstrip())
