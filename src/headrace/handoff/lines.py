"""The form of a log line, the same in every process that runs user code."""

from __future__ import annotations

import logging
import time
from datetime import UTC, datetime

FAILURE = "headrace.task"
"""Who says at the end of a log why the try failed, in a line of this name and those that follow it."""


class LineFormatter(logging.Formatter):
    """`2026-02-03T04:05:06.789Z INFO airflow.task: text`."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s.%(msecs)03dZ %(levelname)s %(name)s: %(message)s", "%Y-%m-%dT%H:%M:%S")
        self.converter = time.gmtime


def line_of(level: str, name: str, text: str) -> str:
    """The same line without a record."""
    now = datetime.now(UTC).isoformat(timespec="milliseconds").removesuffix("+00:00")
    return f"{now}Z {level} {name}: {text}"
