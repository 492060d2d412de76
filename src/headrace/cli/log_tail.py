"""Where a try's log is, and its last lines."""

from __future__ import annotations

from pathlib import Path

from headrace.logs import log_path
from headrace.store import RunRow, TaskRow

_BYTES = 8_192
_LINES = 20
_WIDTH = 500


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
