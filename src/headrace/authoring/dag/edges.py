"""Dependencies between whatever can stand in one: `>>`, `<<`, `chain` and their kin."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any


class Linkable:
    """Anything that can stand on either side of `>>`: a task, a group, a task's result, a label."""

    @property
    def roots(self) -> Sequence[Any]:
        """The tasks that an edge *to* this thing ends at."""
        raise NotImplementedError

    @property
    def leaves(self) -> Sequence[Any]:
        """The tasks that an edge *from* this thing starts at."""
        raise NotImplementedError

    def linked_after(self, upstream: Linkable) -> None:
        """Called when something was linked before this thing."""

    def linked_before(self, downstream: Linkable) -> None:
        """Called when something was linked after this thing."""

    def set_downstream(self, task_or_task_list: Any, edge_modifier: EdgeModifier | None = None) -> None:
        for other in _linkables(task_or_task_list):
            if isinstance(other, EdgeModifier):
                other.set_upstream(self)
            else:
                link(self, other, edge_modifier)

    def set_upstream(self, task_or_task_list: Any, edge_modifier: EdgeModifier | None = None) -> None:
        for other in _linkables(task_or_task_list):
            if isinstance(other, EdgeModifier):
                other.set_downstream(self)
            else:
                link(other, self, edge_modifier)

    def __rshift__(self, other: Any) -> Any:
        self.set_downstream(other)
        return other

    def __lshift__(self, other: Any) -> Any:
        self.set_upstream(other)
        return other

    def __rrshift__(self, other: Any) -> Any:
        self.set_upstream(other)
        return self

    def __rlshift__(self, other: Any) -> Any:
        self.set_downstream(other)
        return self


class EdgeModifier(Linkable):
    """A label on the edges between what was put before it and what was put after it."""

    def __init__(self, label: str | None = None) -> None:
        self.label = label
        self._before: list[Linkable] = []
        self._after: list[Linkable] = []

    @property
    def roots(self) -> Sequence[Any]:
        return [root for thing in self._after for root in thing.roots]

    @property
    def leaves(self) -> Sequence[Any]:
        return [leaf for thing in self._before for leaf in thing.leaves]

    def set_downstream(self, task_or_task_list: Any, edge_modifier: EdgeModifier | None = None) -> None:
        for other in _linkables(task_or_task_list):
            self._after.append(other)
            for before in self._before:
                link(before, other, self)

    def set_upstream(self, task_or_task_list: Any, edge_modifier: EdgeModifier | None = None) -> None:
        for other in _linkables(task_or_task_list):
            self._before.append(other)
            for after in self._after:
                link(other, after, self)


def Label(label: str) -> EdgeModifier:
    """A label for `a >> Label("if it rains") >> b`."""
    return EdgeModifier(label)


def link(upstream: Linkable, downstream: Linkable, modifier: EdgeModifier | None = None) -> None:
    """Make every root of `downstream` wait for every leaf of `upstream`."""
    upstream.linked_before(downstream)
    downstream.linked_after(upstream)
    label = modifier.label if modifier is not None else None
    roots = downstream.roots
    for leaf in upstream.leaves:
        for root in roots:
            leaf.connect(root, label)


def chain(*tasks: Any) -> None:
    """Link each element to the next; two lists of equal length are linked pairwise."""
    for upstream, downstream in pairwise(tasks):
        if isinstance(upstream, Linkable):
            upstream.set_downstream(downstream)
        elif isinstance(downstream, Linkable):
            downstream.set_upstream(upstream)
        else:
            _link_pairwise(upstream, downstream)


def _link_pairwise(upstream: Any, downstream: Any) -> None:
    before, after = list(_linkables(upstream)), list(_linkables(downstream))
    if len(before) != len(after):
        raise ValueError(
            f"expected neighbouring lists in chain() to have the same length, got: {len(before)} and {len(after)}"
        )
    for left, right in zip(before, after, strict=True):
        left.set_downstream(right)


def chain_linear(*elements: Any) -> None:
    """Link everything in each element to everything in the next."""
    for element in elements:
        if isinstance(element, EdgeModifier):
            raise ValueError("chain_linear() takes no labels")
    made_edge = False
    for upstream, downstream in pairwise(elements):
        for left in _linkables(upstream):
            left.set_downstream(downstream)
            made_edge = True
    if not made_edge:
        raise ValueError("chain_linear() made no edge: it needs at least two elements, or a `*` before a single list")


def cross_downstream(from_tasks: Any, to_tasks: Any) -> None:
    """Link everything on the left to everything on the right."""
    for left in _linkables(from_tasks):
        left.set_downstream(to_tasks)


def _linkables(value: Any) -> Iterator[Linkable]:
    if isinstance(value, Linkable):
        yield value
        return
    if isinstance(value, str | bytes) or not isinstance(value, Iterable):
        raise TypeError(f"expected a task, a task group or a list of them in a dependency, got: {_kind(value)}")
    for item in value:
        if not isinstance(item, Linkable):
            raise TypeError(f"expected a task or a task group in a list of dependencies, got: {_kind(item)}")
        yield item


def _kind(value: object) -> str:
    name = getattr(value, "__name__", None)
    text = type(value).__name__
    return f"{text} `{name}` (was it called?)" if name and callable(value) else text
