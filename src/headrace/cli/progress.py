"""What `headrace run` shows on stderr while it works: a live picture on a terminal, plain lines elsewhere."""

from __future__ import annotations

import shutil
import time
from collections.abc import Sequence
from typing import Protocol, TextIO

from headrace.actions.wording import duration, span
from headrace.store import RunRow, TaskRow

_ENDED = ("success", "failed", "skipped", "upstream_failed", "canceled", "removed")
_QUIET = ("none", "scheduled", "queued", "planned")
_STATE_WIDTH = 17


class Progress(Protocol):
    def show(self, tasks: Sequence[TaskRow]) -> None:
        """Show how things are now."""
        ...

    def end(self, run: RunRow, tasks: Sequence[TaskRow]) -> None:
        """Show how it ended."""
        ...


def progress_for(stream: TextIO, run: RunRow) -> Progress:
    """The kind that suits where the output goes."""
    return Live(stream) if stream.isatty() else Lines(stream, run)


class Lines:
    """One line for each change that somebody who reads a log wants to know."""

    def __init__(self, stream: TextIO, run: RunRow) -> None:
        self._stream = stream
        self._states: dict[int, tuple[str, int]] = {}
        self._write(f"run {run.id} of `{run.workflow}` started")

    def show(self, tasks: Sequence[TaskRow]) -> None:
        for task in tasks:
            now = (task.state, task.try_number)
            if self._states.get(task.id) != now:
                self._states[task.id] = now
                if task.state not in _QUIET:
                    self._write(_line(task))

    def end(self, run: RunRow, tasks: Sequence[TaskRow]) -> None:
        self.show(tasks)
        self._write(_summary(run, tasks))

    def _write(self, text: str) -> None:
        print(text, file=self._stream, flush=True)


class Live:
    """A picture that is drawn over itself, each time in one write so that it does not flicker."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._height = 0
        self._began = time.monotonic()

    def show(self, tasks: Sequence[TaskRow]) -> None:
        took = duration(time.monotonic() - self._began)
        self._draw([*self._picture(tasks), f"{_counts(tasks)}, {took}"])

    def end(self, run: RunRow, tasks: Sequence[TaskRow]) -> None:
        self._draw([*self._picture(tasks), _summary(run, tasks)])
        self._height = 0

    def _picture(self, tasks: Sequence[TaskRow]) -> list[str]:
        """All tasks if they fit; otherwise what runs or failed first, then what ended last."""
        rows = max(3, shutil.get_terminal_size((80, 24)).lines - 3)
        if len(tasks) <= rows:
            return [_line(task) for task in tasks]
        chosen = sorted(tasks, key=_interest)[:rows]
        return [_line(task) for task in sorted(chosen, key=lambda task: task.id)]

    def _draw(self, lines: list[str]) -> None:
        columns = shutil.get_terminal_size((80, 24)).columns
        back = f"\x1b[{self._height}A\r" if self._height else ""
        body = "".join(f"{line[: columns - 1]}\x1b[K\n" for line in lines)
        self._stream.write(f"{back}{body}\x1b[J")
        self._stream.flush()
        self._height = len(lines)


def _interest(task: TaskRow) -> tuple[int, int]:
    if task.state == "failed":
        return 0, task.id
    if task.state not in _ENDED and task.state not in _QUIET:
        return 1, task.id
    return (2, -(task.ended_at or 0)) if task.state in _ENDED else (3, task.id)


def _line(task: TaskRow) -> str:
    end = task.ended_at
    if task.state == "running" and task.started_at is not None:
        end = time.time_ns() // 1000
    took = span(task.started_at, end) if task.state in ("running", "success", "failed", "canceled") else ""
    again = f"try {task.try_number}" if task.try_number > 1 else ""
    name = task.name if len(task.name) <= 40 else f"{task.name[:19]}…{task.name[-20:]}"
    return f"  {name:<40}  {task.state:<{_STATE_WIDTH}}{took:>10}  {again}".rstrip()


def _counts(tasks: Sequence[TaskRow]) -> str:
    ended = sum(task.state in _ENDED for task in tasks)
    return f"{ended} of {len(tasks)} tasks done"


def _summary(run: RunRow, tasks: Sequence[TaskRow]) -> str:
    numbers = {state: sum(task.state == state for task in tasks) for state in _ENDED}
    shown = ", ".join(f"{count} {state}" for state, count in numbers.items() if count)
    return f"run {run.id} of `{run.workflow}`: {run.state} in {span(run.started_at, run.ended_at) or '0 s'} ({shown})"
