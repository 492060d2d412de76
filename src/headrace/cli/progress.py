"""What `headrace run` shows on stderr while it works: a live picture on a terminal, plain lines elsewhere."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Sequence
from typing import Protocol, TextIO

from headrace.actions.wording import duration, error_line, span
from headrace.cli.cells import cut, padded, shortened
from headrace.store import RunRow, TaskRow

_ENDED = ("success", "failed", "skipped", "upstream_failed", "canceled", "removed")
_QUIET = ("none", "scheduled", "queued", "planned")
_STATE_WIDTH = 17
_NAME_WIDTH = 40
_SHORTEST_NAME = 8
_TIME_WIDTH = 10


class Progress(Protocol):
    def show(self, tasks: Sequence[TaskRow]) -> None:
        """Show how things are now."""
        ...

    def say(self, text: str) -> None:
        """Show a message that stays. Any thread may call it."""
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

    def say(self, text: str) -> None:
        self._write(text)

    def _write(self, text: str) -> None:
        # In one piece, because log lines come from other threads.
        self._stream.write(f"{text}\n")
        self._stream.flush()


class Live:
    """A picture that is drawn over itself, each time in one write so that it does not flicker; messages go above it."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._lines: list[str] = []
        self._lock = threading.Lock()
        self._began = time.monotonic()

    def show(self, tasks: Sequence[TaskRow]) -> None:
        took = duration(time.monotonic() - self._began)
        with self._lock:
            self._draw([*self._picture(tasks), f"{_counts(tasks)}, {took}"])

    def end(self, run: RunRow, tasks: Sequence[TaskRow]) -> None:
        with self._lock:
            self._draw([*self._picture(tasks), _summary(run, tasks)])
            self._lines = []

    def say(self, text: str) -> None:
        with self._lock:
            self._draw(self._lines, above=text)

    def _picture(self, tasks: Sequence[TaskRow]) -> list[str]:
        """All tasks if they fit; otherwise what runs or failed first, then what ended last."""
        rows = max(3, shutil.get_terminal_size((80, 24)).lines - 3)
        if len(tasks) <= rows:
            return [_line(task, _columns()) for task in tasks]
        chosen = sorted(tasks, key=_interest)[:rows]
        return [_line(task, _columns()) for task in sorted(chosen, key=lambda task: task.id)]

    def _draw(self, lines: list[str], above: str = "") -> None:
        columns = _columns()
        back = f"\x1b[{len(self._lines)}A\r" if self._lines else "\r"
        said = "".join(f"{line}\x1b[K\n" for line in above.splitlines())
        body = "".join(f"{cut(line, columns - 1)}\x1b[K\n" for line in lines)
        self._stream.write(f"{back}{said}{body}\x1b[J")
        self._stream.flush()
        self._lines = lines


def _interest(task: TaskRow) -> tuple[int, int]:
    if task.state == "failed":
        return 0, task.id
    if task.state not in _ENDED and task.state not in _QUIET:
        return 1, task.id
    return (2, -(task.ended_at or 0)) if task.state in _ENDED else (3, task.id)


def _columns() -> int:
    return shutil.get_terminal_size((80, 24)).columns


def _line(task: TaskRow, columns: int = 80) -> str:
    end = task.ended_at
    if task.state == "running" and task.started_at is not None:
        end = time.time_ns() // 1000
    took = span(task.started_at, end) if task.state in ("running", "success", "failed", "canceled") else ""
    again = f"try {task.try_number}" if task.try_number > 1 else ""
    if task.state == "up_for_retry":
        # Of a task that succeeds in the end, nothing else tells what went wrong before.
        again = f"{again}  {error_line(task)}".lstrip()
    # Where there is little room the name is cut, and what comes after the state falls off.
    width = max(_SHORTEST_NAME, min(_NAME_WIDTH, columns - _STATE_WIDTH - _TIME_WIDTH - 5))
    name = padded(shortened(task.name, width), width)
    return f"  {name}  {task.state:<{_STATE_WIDTH}}{took:>{_TIME_WIDTH}}  {again}".rstrip()


def _counts(tasks: Sequence[TaskRow]) -> str:
    ended = sum(task.state in _ENDED for task in tasks)
    return f"{ended} of {len(tasks)} tasks done"


def _summary(run: RunRow, tasks: Sequence[TaskRow]) -> str:
    numbers = {state: sum(task.state == state for task in tasks) for state in _ENDED}
    shown = ", ".join(f"{count} {state}" for state, count in numbers.items() if count)
    return f"run {run.id} of `{run.workflow}`: {run.state} in {span(run.started_at, run.ended_at) or '0 s'} ({shown})"
