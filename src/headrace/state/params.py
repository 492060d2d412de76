"""Which parameters a task sees: defaults, the run's own, exports from above, stores from before.

Later layers win; objects are merged deeply, everything else is replaced. Visibility follows the tree and its edges,
never the time at which tasks happened to end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from headrace.definition import Node

Params = dict[str, Any]


class Position(NamedTuple):
    """Where a task is in the tree and on its edges."""

    parent_id: int | None
    upstream: Sequence[int] = ()
    """Ids of the siblings that it waits for."""


class Left(NamedTuple):
    """What the result of a task left behind."""

    exported: Mapping[str, Any] = {}
    """For everything below it, besides what its definition exports."""
    store: Mapping[str, Any] = {}
    """For everything after it."""
    reset: Sequence[str] = ()
    """Dotted paths that are deleted before its store is merged."""


def merge(into: Params, other: Mapping[str, Any]) -> Params:
    """Merge deeply: objects into objects, anything else replaces. Returns `into`."""
    for key, value in other.items():
        present = into.get(key)
        if isinstance(value, Mapping) and isinstance(present, dict):
            into[key] = merge(dict(present), value)
        else:
            into[key] = dict(value) if isinstance(value, Mapping) else value
    return into


class Layers:
    """The parameters of an attempt's tasks at one moment; what tasks share is merged once.

    `base` are the lowest layers, weakest first. `node_of` gives the definition of a task or of one that encloses it.
    """

    def __init__(
        self,
        base: Iterable[Mapping[str, Any]],
        positions: Mapping[int, Position],
        left: Mapping[int, Left],
        node_of: Callable[[int], Node],
    ) -> None:
        self._positions = positions
        self._left = left
        self._node_of = node_of
        self._children: dict[int | None, list[int]] | None = None
        self._stored = self._stored_below()
        self._inside: dict[int | None, Params] = {None: {}}
        for mapping in base:
            merge(self._inside[None], mapping)

    def visible(self, task_id: int) -> Params:
        """The parameters of a task, without its local ones."""
        node = self._node_of(task_id)
        params = dict(self._shown_inside(self._positions[task_id].parent_id))
        if node.sees_siblings:
            return self._with_stores(merge(params, node.export), task_id)
        return merge(self._with_stores(params, task_id), node.export)

    def _with_stores(self, params: Params, task_id: int) -> Params:
        """The parameters and, over them, the stores of everything before a task."""
        for earlier in self._before(task_id):
            for one in self._stored.get(earlier, ()):
                _apply_store(params, self._left[one])
        return params

    def _shown_inside(self, task_id: int | None) -> Params:
        """What a task shows to those directly below it."""
        if task_id is not None and task_id not in self._inside:
            params = self.visible(task_id)
            left = self._left.get(task_id, Left())
            merge(params, left.exported)
            _apply_store(params, left)
            self._inside[task_id] = params
        return self._inside[task_id]

    def _before(self, task_id: int) -> list[int]:
        """Everything that it waits for, directly or not: first what the first of them waits for, then that one."""
        if self._node_of(task_id).sees_siblings:
            siblings = self._siblings(self._positions[task_id].parent_id)
            return [sibling for sibling in siblings if sibling < task_id]
        found: list[int] = []
        seen: set[int] = set()
        pending = [(one, False) for one in sorted(self._positions[task_id].upstream, reverse=True)]
        while pending:
            current, is_next = pending.pop()
            if is_next:
                found.append(current)
            elif current not in seen and current in self._positions:
                seen.add(current)
                pending.append((current, True))
                pending += [(one, False) for one in sorted(self._positions[current].upstream, reverse=True)]
        return found

    def _siblings(self, parent_id: int | None) -> list[int]:
        if self._children is None:
            self._children = {}
            for one in sorted(self._positions):
                self._children.setdefault(self._positions[one].parent_id, []).append(one)
        return self._children.get(parent_id, [])

    def _stored_below(self) -> dict[int, list[int]]:
        """For each task those that have stored something, of itself and of all below it, as they are in the tree."""
        stored: dict[int, list[int]] = {}
        # Ids follow the file among siblings only: what a task generates is younger than everything in the file.
        for path in sorted(self._path(task_id) for task_id in self._left if task_id in self._positions):
            for above in path:
                stored.setdefault(above, []).append(path[-1])
        return stored

    def _path(self, task_id: int) -> tuple[int, ...]:
        """The ids from the root down to a task."""
        path = [task_id]
        while (parent_id := self._positions[path[-1]].parent_id) is not None:
            path.append(parent_id)
        return tuple(reversed(path))


def _apply_store(params: Params, left: Left) -> None:
    for path in left.reset:
        _delete(params, path.split("."))
    merge(params, left.store)


def _delete(params: Params, path: Sequence[str]) -> None:
    inner = params
    for name in path[:-1]:
        following = inner.get(name)
        if not isinstance(following, dict):
            return
        inner[name] = dict(following)
        inner = inner[name]
    inner.pop(path[-1], None)
