"""Which tasks of a workflow take part in an attempt, and which are carried over from the one before."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence

from headrace.definition import Node
from headrace.errors import NotFoundError, UsageError, nearest
from headrace.state import Links, Tree, around, preceding, with_below
from headrace.store import TaskRow

_SHOWN = 5
_PARTING = re.compile(r"[+.]")
"""What parts the names of groups from those of the tasks in them."""


def tree_of_nodes(nodes: Sequence[Node]) -> dict[str, Links]:
    """A definition as the functions below want it."""
    return {node.key: Links(node.parent, node.upstream) for node in nodes}


def tree_of_tasks(tasks: Sequence[TaskRow], edges: Iterable[tuple[int, int]]) -> dict[str, Links]:
    """The tasks of an attempt, by name."""
    names = {task.id: task.name for task in tasks}
    upstream: dict[int, list[str]] = {}
    for upstream_id, downstream_id in edges:
        if upstream_id in names:
            upstream.setdefault(downstream_id, []).append(names[upstream_id])
    return {
        task.name: Links(names.get(task.parent_id or 0), upstream.get(task.origin_id, ()))
        for task in sorted(tasks, key=lambda one: one.id)
    }


def matching(tree: Tree, pattern: str, where: str | None = None) -> str:
    """The one task whose name ends with the pattern. `where` says where its tasks are listed, in place of a list."""
    if pattern in tree:
        return pattern
    plain = pattern.removeprefix("+")
    found = [name for name in tree if name.endswith((f"+{plain}", f".{plain}"))]
    found = found or [name for name in tree if name == plain]
    if len(found) == 1:
        return found[0]
    if found:
        listed = ", ".join(f"`{name}`" for name in found[:3])
        raise UsageError(f"several tasks match `{pattern}`: {listed}", hint="write more of the name")
    names = [name for name in tree if name]
    meant = _meant(names, pattern)
    hints = ([f"did you mean `{meant}`?"] if meant else []) + [where or _listed(names)]
    raise NotFoundError(f"there is no task `{pattern}`", hint=" ".join(hints))


def _meant(names: Sequence[str], pattern: str) -> str | None:
    """The nearest task, also where only the last part of its name was written."""
    last_parts = {_PARTING.split(name)[-1]: name for name in reversed(names)}
    return nearest(pattern, names) or last_parts.get(nearest(_PARTING.split(pattern)[-1], last_parts) or "")


def _listed(names: Sequence[str]) -> str:
    if not names:
        return "the workflow has no tasks"
    shown = ", ".join(f"`{name}`" for name in names[:_SHOWN])
    more = f" and {len(names) - _SHOWN} more, which `headrace check --json` lists" if len(names) > _SHOWN else ""
    return f"the workflow has {shown}{more}"


def with_grown(definition: Tree, tasks: Tree, allowed: Collection[str]) -> set[str]:
    """Names of tasks that a definition allows, and of what grew below those that it does not know."""
    names: set[str] = set()
    for name, links in tasks.items():
        is_known = name.partition("[")[0] in definition
        if (name.partition("[")[0] in allowed) if is_known else (links.parent in names):
            names.add(name)
    return names


def alone(tree: Tree, pattern: str) -> tuple[str, ...]:
    """A task with all that is below it and what it is in, and nothing that it would wait for."""
    name = matching(tree, pattern)
    return _in_order(tree, {*with_below(tree, [name]), *around(tree, name)})


def up_to(tree: Tree, pattern: str) -> tuple[str, ...]:
    """A task with everything before it and below it."""
    name = matching(tree, pattern)
    return _in_order(tree, {*with_below(tree, [name]), *_before(tree, name)})


def before(tree: Tree, pattern: str) -> tuple[str, ...]:
    """Everything before a task, without it."""
    return _in_order(tree, _before(tree, matching(tree, pattern)))


def _before(tree: Tree, name: str) -> set[str]:
    """Everything before a task, and the groups that this is in."""
    found = preceding(tree, name)
    return {*found, *around(tree, name), *(one for earlier in found for one in around(tree, earlier))}


def _in_order(tree: Tree, names: set[str]) -> tuple[str, ...]:
    return tuple(name for name in tree if name in names)
