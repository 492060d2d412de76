"""What the tasks of the load wrote down, apart from the store."""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

from headrace.processes import is_alive


class Line(NamedTuple):
    """One thing that a process said."""

    what: str
    """start, end, overlap (another try of the task was alive) or exceeded (of a limit)."""
    workflow: str
    run: str
    """The run's key, or its attempt's id."""
    task: str
    number: int
    """Of the try; 0 if the task does not know."""
    pid: int
    at: float
    """On the monotonic clock; 0 if the task does not know."""
    limit: str = ""

    @property
    def name(self) -> tuple[str, str, str]:
        return self.workflow, self.run, self.task


class Record:
    """The lines of one load, read as they come."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._lines: list[Line] = []
        self._read_bytes = 0

    def lines(self) -> list[Line]:
        """Everything so far, in the order in which it was written."""
        try:
            with open(self.folder / "record", "rb") as file:
                file.seek(self._read_bytes)
                complete, newline, _ = file.read().rpartition(b"\n")
        except FileNotFoundError:
            return []
        self._read_bytes += len(complete) + len(newline)
        self._lines += [_line(json.loads(text)) for text in complete.splitlines()]
        return self._lines

    def under_way(self) -> list[Line]:
        """The starts of executions that are neither at their end nor dead."""
        open_: dict[tuple[int, str], Line] = {}
        for line in self.lines():
            if line.what == "start":
                open_[line.pid, line.task] = line
            elif line.what == "end":
                open_.pop((line.pid, line.task), None)
        return [line for line in open_.values() if is_alive(line.pid)]

    def next_start(self, name: tuple[str, str, str], after: float) -> float | None:
        """When a task began again."""
        return next(
            (one.at for one in self.lines() if one.what == "start" and one.name == name and one.at > after), None
        )


def _line(said: dict[str, object]) -> Line:
    return Line(**{name: said[name] for name in Line._fields if name in said})  # type: ignore[arg-type]
