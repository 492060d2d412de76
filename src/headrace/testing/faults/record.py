"""What the tasks of the load wrote down, apart from the store."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import NamedTuple

from headrace.processes import is_alive

_CLOCK_SECONDS = 1.0
"""How far the clock of processes and that of the record may be apart."""


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
    wall: float = 0.0
    """On the machine's clock; 0 if the task does not know."""
    revision: int = 0
    """Of the code that ran."""

    @property
    def name(self) -> tuple[str, str, str]:
        return self.workflow, self.run, self.task


class Record:
    """The lines of one load, read as they come. A look costs what is new and what goes on, however many there were."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._lines: list[Line] = []
        self._open: dict[tuple[int, str], int] = {}
        """By process and task: which line is the start of an execution that may be under way."""
        self._ends: dict[tuple[int, tuple[str, str, str]], float] = {}
        """By process and task: when the last execution came to its end."""
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
        for text in complete.splitlines():
            self._take(_line(json.loads(text)))
        return self._lines

    def _take(self, line: Line) -> None:
        if line.what == "start":
            self._open[line.pid, line.task] = len(self._lines)
        elif line.what == "end":
            self._open.pop((line.pid, line.task), None)
            self._ends[line.pid, line.name] = line.at
        self._lines.append(line)

    def under_way(self) -> list[Line]:
        """The starts of executions that are neither at their end nor dead."""
        lines = self.lines()
        # Who is dead stays so, whoever has its number later.
        self._open = {key: index for key, index in self._open.items() if self._is_alive(index)}
        return [lines[index] for index in self._open.values()]

    def _is_alive(self, index: int) -> bool:
        line = self._lines[index]
        return is_alive(line.pid) and not self._is_of_another(index)

    def _is_of_another(self, index: int) -> bool:
        """Whether the process with this number now is a later one: in half an hour the numbers are used many times."""
        # In the order in which they were written: a line without a time is older than the next one that has one.
        later = (self._lines[number].at for number in range(index, len(self._lines)))
        latest = next((at for at in later if at), float("inf"))
        return started_at(self._lines[index].pid) > latest + _CLOCK_SECONDS

    def came_to_its_end(self, start: Line) -> bool:
        """Whether an execution that began has also ended, by itself."""
        self.lines()
        return self._ends.get((start.pid, start.name), float("-inf")) >= start.at

    def next_start(self, name: tuple[str, str, str], after: float) -> float | None:
        """When a task began again."""
        return next(
            (one.at for one in self.lines() if one.what == "start" and one.name == name and one.at > after), None
        )


def started_at(pid: int) -> float:
    """When a process began, in seconds since the machine did; 0 if it is gone or the system does not tell."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    # After the name come state, parent, …; `proc(5)` numbers the start 22.
    return int(fields[19]) / os.sysconf("SC_CLK_TCK")


def _line(said: dict[str, object]) -> Line:
    return Line(**{name: said[name] for name in Line._fields if name in said})  # type: ignore[arg-type]
