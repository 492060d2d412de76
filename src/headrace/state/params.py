"""Which parameters a task sees: defaults, the run's own, exports from above, stores from before.

Later layers win; objects are merged deeply, everything else is replaced. Visibility follows the tree and its edges,
never the time at which tasks happened to end.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

Params = dict[str, Any]


class Layer(NamedTuple):
    """What one task contributes."""

    id: int
    parent_id: int | None
    upstream: tuple[int, ...]
    """Ids of the siblings that it waits for."""
    export: Mapping[str, Any]
    """For itself and everything below it: what its definition exports, then what its own result exported."""
    exported: Mapping[str, Any]
    store: Mapping[str, Any]
    """For everything after it."""
    reset: Sequence[str]
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


def visible_params(base: Iterable[Mapping[str, Any]], layers: Mapping[int, Layer], task_id: int) -> Params:
    """The parameters of a task, without its local ones. `base` are the lowest layers, weakest first."""
    params: Params = {}
    for mapping in base:
        merge(params, mapping)
    below = _children(layers)
    for ancestor in _path(layers, task_id):
        for earlier in _before(layers, ancestor.id):
            for one in _subtree(layers, below, earlier):
                _apply_store(params, one)
        merge(params, ancestor.export)
        if ancestor.id != task_id:
            merge(params, ancestor.exported)
            _apply_store(params, ancestor)
    return params


def _children(layers: Mapping[int, Layer]) -> dict[int | None, list[int]]:
    below: dict[int | None, list[int]] = {}
    for layer in sorted(layers.values()):
        below.setdefault(layer.parent_id, []).append(layer.id)
    return below


def _path(layers: Mapping[int, Layer], task_id: int) -> list[Layer]:
    """From the root down to the task itself."""
    path = [layers[task_id]]
    while path[-1].parent_id is not None:
        path.append(layers[path[-1].parent_id])
    return path[::-1]


def _before(layers: Mapping[int, Layer], task_id: int) -> list[int]:
    """Everything that it waits for, directly or not. Ids follow the file, so their order is the file's."""
    seen: set[int] = set()
    pending = list(layers[task_id].upstream)
    while pending:
        current = pending.pop()
        if current not in seen and current in layers:
            seen.add(current)
            pending += layers[current].upstream
    return sorted(seen)


def _subtree(layers: Mapping[int, Layer], below: Mapping[int | None, list[int]], top: int) -> list[Layer]:
    found, pending = [], [top]
    while pending:
        current = pending.pop()
        found.append(layers[current])
        pending += below.get(current, ())
    return sorted(found)


def _apply_store(params: Params, layer: Layer) -> None:
    for path in layer.reset:
        _delete(params, path.split("."))
    merge(params, layer.store)


def _delete(params: Params, path: Sequence[str]) -> None:
    inner = params
    for name in path[:-1]:
        following = inner.get(name)
        if not isinstance(following, dict):
            return
        inner[name] = dict(following)
        inner = inner[name]
    inner.pop(path[-1], None)
