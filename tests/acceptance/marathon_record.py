"""What the tries of the marathon wrote down, and whether it agrees with the store."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import NamedTuple

from cluster import Cluster

from headrace.processes import is_alive


class Line(NamedTuple):
    what: str
    task: str
    number: int
    pid: int
    at: float


class Record:
    """The lines of one run, read again whenever somebody asks."""

    def __init__(self, folder: Path, tasks: int) -> None:
        self.folder = folder
        self.tasks = tasks
        self.settings = {"MARATHON_FOLDER": str(folder), "MARATHON_TASKS": str(tasks)}

    def lines(self) -> list[Line]:
        try:
            text = (self.folder / "record").read_text()
        except FileNotFoundError:
            return []
        rows = (line.split() for line in text.splitlines())
        return [Line(what, task, int(number), int(pid), float(at)) for what, task, number, pid, at in rows]

    def ended(self) -> int:
        return sum(line.what == "end" for line in self.lines())

    def under_way(self) -> list[Line]:
        """Tries that have begun and are neither at their end nor dead."""
        lines = self.lines()
        ended = {line.pid for line in lines if line.what == "end"}
        return [line for line in lines if line.what == "start" and line.pid not in ended and is_alive(line.pid)]

    def has_ended(self, task: str, number: int) -> bool:
        return any((line.what, line.task, line.number) == ("end", task, number) for line in self.lines())

    def started_at(self, task: str, number: int) -> float | None:
        """When a try began, if it has."""
        lines = self.lines()
        return next((line.at for line in lines if (line.what, line.task, line.number) == ("start", task, number)), None)

    def check(self, cluster: Cluster, run_id: int, *, may_overlap: bool = False) -> None:
        """Every task succeeded once, no two tries of one ran at the same time, and the store knows of every try."""
        assert cluster.wait_for_end(run_id).state == "success", cluster.stderr()
        lines, tries = self.lines(), cluster.tries(run_id)
        assert len(tries) == self.tasks
        started = Counter((line.task, line.number) for line in lines if line.what == "start")
        ended = Counter((line.task, line.number) for line in lines if line.what == "end")
        kept = Counter((task, one.try_number) for task, rows in tries.items() for one in rows)
        assert not started - kept, "tries that the store does not know of"
        for task, rows in tries.items():
            numbers = [one.try_number for one in rows]
            assert numbers == sorted(numbers) and set(numbers) == set(range(1, numbers[-1] + 1)), (task, rows)
            assert [one.state for one in rows].count("success") == 1 and rows[-1].state == "success", (task, rows)
            assert ended[task, numbers[-1]] >= 1, f"`{task}` succeeded without having run to its end"
        if not may_overlap:
            assert not [line for line in lines if line.what == "overlap"]
