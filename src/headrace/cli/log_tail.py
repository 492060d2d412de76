"""Where a try's log is, and its last lines."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from headrace.handoff import FAILURE
from headrace.logs import log_path
from headrace.store import RunRow, TaskRow

_BYTES = 8_192
_LINES = 20
_WIDTH = 500
_HEADLINE = re.compile(rf"\d{{4}}-\d\d-\d\dT[\d:.]+Z ERROR {re.escape(FAILURE)}: .*")


def log_file(logs_dir: Path, run: RunRow, task: TaskRow, number: int) -> Path:
    """The log of one try."""
    return log_path(
        logs_dir, run.workflow, run.key, task.key, task.map_index, run.attempt_number, number, project=run.project
    )


def tail(path: Path) -> list[str]:
    """The last lines, each cut to a bearable length, however large the file is."""
    try:
        with open(path, "rb") as file:
            size = file.seek(0, 2)
            file.seek(max(0, size - _BYTES))
            text = file.read().decode(errors="replace")
    except OSError:
        return []
    return [line[:_WIDTH] for line in text.splitlines()[-_LINES:]]


def without_headline(lines: Iterable[str]) -> list[str]:
    """The lines without the one that says that the try failed, for where that is said already."""
    shown = ((line, _HEADLINE.sub("", line)) for line in lines)
    return [rest for line, rest in shown if rest or not line]
