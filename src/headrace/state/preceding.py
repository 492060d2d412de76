"""What comes before a task: in the order in which parameters are handed on, not in the order of time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple


class Links(NamedTuple):
    """Where a task stands."""

    parent: str | None
    upstream: Sequence[str]


Tree = Mapping[str, Links]
"""Tasks by name, parents before their children."""


def preceding(tasks: Tree, name: str) -> set[str]:
    """What a task and everything around it wait for, directly or not, with all that is below that."""
    outside = around(tasks, name)
    found: set[str] = set()
    pending = [upstream for one in (name, *outside) for upstream in tasks[one].upstream]
    while pending:
        current = pending.pop()
        if current in tasks and current not in found:
            found.add(current)
            pending += tasks[current].upstream
    return with_below(tasks, found) - set(outside)


def following(tasks: Tree, names: Iterable[str]) -> set[str]:
    """Tasks with everything that waits for them or for what they are in, directly or not."""
    waiting: dict[str, list[str]] = {}
    for name, links in tasks.items():
        for upstream in links.upstream:
            waiting.setdefault(upstream, []).append(name)
    found = set(names)
    pending = list(found)
    while pending:
        current = pending.pop()
        later = [one for near in (current, *around(tasks, current)) for one in waiting.get(near, ())]
        fresh = with_below(tasks, later) - found if later else set()
        found |= fresh
        pending += fresh
    return found


def with_below(tasks: Tree, tops: Iterable[str]) -> set[str]:
    """Tasks with everything below them."""
    chosen = set(tops)
    for name, links in tasks.items():
        if links.parent in chosen:
            chosen.add(name)
    return chosen


def around(tasks: Tree, name: str) -> list[str]:
    """What a task is in, from the inside out."""
    found: list[str] = []
    parent = tasks[name].parent
    while parent is not None:
        found.append(parent)
        parent = tasks[parent].parent
    return found
