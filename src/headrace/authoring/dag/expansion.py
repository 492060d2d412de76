"""What a mapped task is multiplied over: keyword arguments with many values, or many sets of keyword arguments."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod
from typing import Any, Protocol

from headrace.authoring.dag.node import TaskNode
from headrace.authoring.dag.xcom_arg import ResultExpression, elements_of, references_in, resolve_inside
from headrace.definition import Length


class Expansion(Protocol):
    """The source of a mapped task's instances."""

    def names(self) -> frozenset[str]:
        """The arguments that are known to be mapped when the file is loaded."""
        ...

    def tasks(self) -> Iterator[TaskNode]:
        """The tasks whose results are needed."""
        ...

    def length(self) -> Length: ...

    def count(self, context: Mapping[str, Any]) -> int:
        """How many instances there are, in the process of one of them."""
        ...

    def arguments(self, index: int, context: Mapping[str, Any]) -> tuple[dict[str, Any], list[Any]]:
        """The keyword arguments of one instance, and those of their values that came out of other tasks."""
        ...


class CrossProduct:
    """`expand(a=..., b=...)`: every combination; the last argument varies fastest."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        if not values:
            raise TypeError("expand() needs at least one argument to map over")
        for name, value in values.items():
            if not isinstance(value, ResultExpression) and not _is_mappable(value):
                raise ValueError(f"expected a list, a dict or a task's result for `{name}` in expand(), got: {value!r}")
        self._values = dict(values)

    def names(self) -> frozenset[str]:
        return frozenset(self._values)

    def tasks(self) -> Iterator[TaskNode]:
        for reference in references_in(self._values):
            yield from reference.tasks()

    def length(self) -> Length:
        lengths = tuple(
            value.length() if isinstance(value, ResultExpression) else Length(op="literal", length=len(value))
            for value in self._values.values()
        )
        return lengths[0] if len(lengths) == 1 else Length(op="product", parts=lengths)

    def count(self, context: Mapping[str, Any]) -> int:
        return prod(len(_elements(value, name, context)) for name, value in self._values.items())

    def arguments(self, index: int, context: Mapping[str, Any]) -> tuple[dict[str, Any], list[Any]]:
        columns = {name: _elements(value, name, context) for name, value in self._values.items()}
        chosen: dict[str, Any] = {}
        for name, position in _positions(index, columns).items():
            chosen[name] = resolve_inside(_element(columns[name], position, index), context)
        computed = [chosen[name] for name, value in self._values.items() if next(references_in(value), None)]
        return {name: chosen[name] for name in self._values}, computed


class KeywordSets:
    """`expand_kwargs([...])`: one instance for each set of keyword arguments."""

    def __init__(self, sets: Any) -> None:
        if not isinstance(sets, ResultExpression) and not _is_mappable(sets):
            raise TypeError(f"expected a list of dicts or a task's result in expand_kwargs(), got: {sets!r}")
        self._sets = sets

    def names(self) -> frozenset[str]:
        if isinstance(self._sets, ResultExpression):
            return frozenset()
        return frozenset(name for item in self._sets if isinstance(item, Mapping) for name in item)

    def tasks(self) -> Iterator[TaskNode]:
        for reference in references_in(self._sets):
            yield from reference.tasks()

    def length(self) -> Length:
        if isinstance(self._sets, ResultExpression):
            return self._sets.length()
        return Length(op="literal", length=len(self._sets))

    def count(self, context: Mapping[str, Any]) -> int:
        return len(_elements(self._sets, "expand_kwargs", context))

    def arguments(self, index: int, context: Mapping[str, Any]) -> tuple[dict[str, Any], list[Any]]:
        item = _element(_elements(self._sets, "expand_kwargs", context), index, index)
        chosen = resolve_inside(item, context)
        if not isinstance(chosen, Mapping) or not all(isinstance(name, str) for name in chosen):
            raise ValueError(f"expected each element of expand_kwargs() to be a dict of arguments, got: {chosen!r}")
        is_computed = next(references_in(self._sets), None) is not None
        return dict(chosen), list(chosen.values()) if is_computed else []


def instance_count(task: Any, instance: Any) -> int | None:
    """How many instances a task has when it runs; None if it is no mapped one."""
    expansion: Expansion | None = task.mapped_group.expansion if task.mapped_group else getattr(task, "expansion", None)
    return None if expansion is None else expansion.count({"ti": instance})


def _is_mappable(value: Any) -> bool:
    return isinstance(value, Mapping | Sequence) and not isinstance(value, str | bytes)


def _elements(value: Any, name: str, context: Mapping[str, Any]) -> Sequence[Any]:
    return value.elements(context) if isinstance(value, ResultExpression) else elements_of(value, f"`{name}`")


def _positions(index: int, columns: dict[str, Sequence[Any]]) -> dict[str, int]:
    """Where in each column an instance finds its value. A single column needs no length, which would be asked for."""
    if len(columns) == 1:
        return dict.fromkeys(columns, index)
    positions: dict[str, int] = {}
    left = index
    for name, column in reversed(columns.items()):
        left, positions[name] = divmod(left, max(1, len(column)))
    if left:
        raise _shrunk(index)
    return positions


def _element(column: Sequence[Any], position: int, index: int) -> Any:
    try:
        return column[position]
    except IndexError:
        raise _shrunk(index) from None


def _shrunk(index: int) -> IndexError:
    return IndexError(f"there is no data for instance {index}: did the source shrink?")
