"""How sentences for people write instants, durations, names and errors."""

from __future__ import annotations

from collections.abc import Sequence

from headrace.clock import from_micros
from headrace.store import TaskRow

_SHOWN = 3


def instant(micros: int | None) -> str:
    """`2026-02-03 04:05:06Z`, to the second."""
    if micros is None:
        return "an unknown time"
    return from_micros(micros).strftime("%Y-%m-%d %H:%M:%SZ")


def duration(seconds: float) -> str:
    """`0.3 s`, `41 s`, `2 min 5 s`, `3 h 20 min`, `2 d 4 h`."""
    if seconds < 9.95:
        return f"{max(0.0, seconds):.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    if whole < 86_400:
        return f"{whole // 3600} h {whole % 3600 // 60} min"
    return f"{whole // 86_400} d {whole % 86_400 // 3600} h"


def span(start: int | None, end: int | None) -> str:
    """How long it was from one instant to another; empty if one of them is unknown."""
    return "" if start is None or end is None else duration((end - start) / 1e6)


def names(tasks: Sequence[TaskRow]) -> str:
    """`a` (running), `b` (none) and 4 more."""
    return _some([f"`{task.name}` ({task.state})" for task in tasks])


def are_stopping(kind: str, processes: Sequence[str]) -> str:
    """agents `a`, `b` and `c` are stopping."""
    which = _some([f"`{name}`" for name in processes])
    return f"{kind} {which} is stopping" if len(processes) == 1 else f"{kind}s {which} are stopping"


def _some(things: Sequence[str]) -> str:
    shown = [*things[:_SHOWN]]
    if len(things) > _SHOWN:
        shown.append(f"{len(things) - _SHOWN} more")
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"


def error_line(task: TaskRow) -> str:
    """The first line of why a task failed."""
    error = task.error
    if error is None:
        return "no reason was recorded"
    message = error.message.strip().split("\n")[0]
    says_it_all = not message or not error.type or message.startswith("task `")
    return message if says_it_all else f"{error.type}: {message}"


def tries(task: TaskRow) -> str:
    """`try 2 of 3`."""
    return f"try {task.try_number} of {max(task.try_number, task.max_tries + 1)}"
