"""References to results that do not exist yet: what a task call returns, and what can be built from it.

A reference is resolved in the process of the task that needs it. For mapping, the engine only needs to know how many
elements it will have, which `length` says without resolving anything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, overload

from headrace.authoring.dag import setup_scope
from headrace.authoring.dag.edges import Linkable
from headrace.authoring.dag.exceptions import UnmappableXComTypePushed, XComForMappingNotPushed, XComNotFound
from headrace.authoring.dag.node import TaskNode
from headrace.definition import Length

RETURN_VALUE = "return_value"


class Unset:
    """Stands for an argument that was not given, where None is a value."""

    def __bool__(self) -> bool:
        return False

    def __repr__(self) -> str:
        return "NOTSET"


NOTSET = Unset()


class ResultExpression(Linkable):
    """A value that will be known once the tasks in it have run."""

    def tasks(self) -> Iterator[TaskNode]:
        """The tasks whose results are needed."""
        raise NotImplementedError

    def length(self) -> Length:
        """The number of elements, as the engine computes it."""
        raise NotImplementedError

    def resolve(self, context: Mapping[str, Any]) -> Any:
        """The value, in the process of the task that needs it."""
        return list(self.elements(context))

    def elements(self, context: Mapping[str, Any]) -> Sequence[Any]:
        """The elements to map over; a dict gives its pairs."""
        raise NotImplementedError

    @property
    def roots(self) -> Sequence[TaskNode]:
        return list(self.tasks())

    @property
    def leaves(self) -> Sequence[TaskNode]:
        return list(self.tasks())

    def map(self, f: Callable[[Any], Any]) -> MapXComArg:
        """The same elements, each passed through a function in the task that uses it."""
        if not callable(f) or hasattr(f, "override"):
            raise ValueError("expected map() to get a plain function, got: " + type(f).__name__)
        return MapXComArg(self, f)

    def zip(self, *others: ResultExpression, fillvalue: Any = NOTSET) -> ZipXComArg:
        """Tuples of elements side by side; without a fill value they end with the shortest."""
        return ZipXComArg((self, *others), fillvalue)

    def concat(self, *others: ResultExpression) -> ConcatXComArg:
        """The elements of all, one after the other."""
        return ConcatXComArg((self, *others))

    def __iter__(self) -> Iterator[Any]:
        raise TypeError(f"{self!r} is the result of a task that has not run yet, so it cannot be iterated here")


class XComArg(ResultExpression):
    """The result of a task, or one of its named results: `task["name"]`."""

    def __init__(self, operator: TaskNode, key: str = RETURN_VALUE) -> None:
        self.operator = operator
        self.key = key

    def __getitem__(self, item: str) -> XComArg:
        if not isinstance(item, str):
            raise ValueError(f"expected the name of a result of `{self.operator.task_id}` in brackets, got: {item!r}")
        return XComArg(self.operator, item)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, XComArg) and (self.operator, self.key) == (other.operator, other.key)

    def __hash__(self) -> int:
        return hash((id(self.operator), self.key))

    def __str__(self) -> str:
        call = f"task_ids='{self.operator.task_id}', dag_id='{self.operator.dag_id}', key='{self.key}'"
        return f"{{{{ task_instance.xcom_pull({call}) }}}}"

    def __repr__(self) -> str:
        key = "" if self.key == RETURN_VALUE else f"[{self.key!r}]"
        return f"<result of {self.operator.task_id}{key}>"

    def tasks(self) -> Iterator[TaskNode]:
        yield self.operator

    def length(self) -> Length:
        if self.key != RETURN_VALUE:
            raise ValueError(
                f"a task cannot be mapped over the named result `{self.key}` of `{self.operator.task_id}`,"
                " only over what it returns"
            )
        return Length(op="result", task=self.operator.task_id)

    def resolve(self, context: Mapping[str, Any]) -> Any:
        task_id = self.operator.task_id
        is_in_step = self._is_in_step_with(context["ti"].task)
        index = context["ti"].map_index if is_in_step else None
        value = context["ti"].xcom_pull(task_ids=task_id, key=self.key, default=NOTSET, map_indexes=index)
        if value is not NOTSET:
            return value
        if self.operator.has_instances and not is_in_step:
            return []
        if self.key != RETURN_VALUE and not getattr(self.operator, "multiple_outputs", False):
            raise XComNotFound(f"task `{task_id}` has pushed no value named `{self.key}`")
        return None

    def _is_in_step_with(self, task: Any) -> bool:
        """Whether both are in one mapped group, where each instance meets those of its own index."""
        group = self.operator.mapped_group
        return group is not None and task.mapped_group is group

    def elements(self, context: Mapping[str, Any]) -> Sequence[Any]:
        return _Pulled(context["ti"], self.operator.task_id)

    def __enter__(self) -> setup_scope.SetupScope:
        return setup_scope.enter([self.operator])

    def __exit__(self, *exc_info: object) -> None:
        setup_scope.leave()

    def as_setup(self) -> XComArg:
        self.operator.as_setup()
        return self

    def as_teardown(self, setups: Any = None, on_failure_fail_dagrun: bool | None = None) -> XComArg:
        self.operator.as_teardown(setups, on_failure_fail_dagrun)
        return self


class MapXComArg(ResultExpression):
    def __init__(self, source: ResultExpression, function: Callable[[Any], Any]) -> None:
        self.source = source
        self.function = function

    def tasks(self) -> Iterator[TaskNode]:
        return self.source.tasks()

    def length(self) -> Length:
        return self.source.length()

    def elements(self, context: Mapping[str, Any]) -> Sequence[Any]:
        return _Mapped(self.source.elements(context), self.function)


class _Pulled(Sequence[Any]):
    """The elements of a task's result, each fetched when it is asked for: n instances must not fetch n lists of n."""

    def __init__(self, instance: Any, task_id: str) -> None:
        self._instance = instance
        self._task_id = task_id

    def __len__(self) -> int:
        try:
            return int(self._instance.length_of(self._task_id))
        except LookupError:
            raise XComForMappingNotPushed(f"task `{self._task_id}` returned nothing to map over") from None

    def __getitem__(self, index: Any) -> Any:
        try:
            kind, value = self._instance.element_of(self._task_id, index)
        except LookupError:
            raise IndexError(f"task `{self._task_id}` has no element {index} to map over") from None
        return elements_of(value, f"task `{self._task_id}`")[index] if kind == "whole" else value


class _Mapped(Sequence[Any]):
    """Calls the function only for the elements that are asked for: one mapped task must not pay for its siblings."""

    def __init__(self, items: Sequence[Any], function: Callable[[Any], Any]) -> None:
        self._items = items
        self._function = function

    def __len__(self) -> int:
        return len(self._items)

    @overload
    def __getitem__(self, index: int) -> Any: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Any]: ...
    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return [self._function(item) for item in self._items[index]]
        return self._function(self._items[index])


class ZipXComArg(ResultExpression):
    def __init__(self, parts: Sequence[ResultExpression], fillvalue: Any) -> None:
        self.parts = tuple(parts)
        self.fillvalue = fillvalue

    def tasks(self) -> Iterator[TaskNode]:
        for part in self.parts:
            yield from part.tasks()

    def length(self) -> Length:
        parts = tuple(part.length() for part in self.parts)
        return Length(op="zip_shortest" if self.fillvalue is NOTSET else "zip_longest", parts=parts)

    def elements(self, context: Mapping[str, Any]) -> Sequence[Any]:
        return _Zipped([part.elements(context) for part in self.parts], self.fillvalue)


class ConcatXComArg(ResultExpression):
    def __init__(self, parts: Sequence[ResultExpression]) -> None:
        self.parts = tuple(parts)

    def tasks(self) -> Iterator[TaskNode]:
        for part in self.parts:
            yield from part.tasks()

    def length(self) -> Length:
        return Length(op="concat", parts=tuple(part.length() for part in self.parts))

    def elements(self, context: Mapping[str, Any]) -> Sequence[Any]:
        return _Joined([part.elements(context) for part in self.parts])


class _Zipped(Sequence[Any]):
    """Rows of several columns, made one at a time."""

    def __init__(self, columns: Sequence[Sequence[Any]], fillvalue: Any) -> None:
        self._columns = columns
        self._fillvalue = fillvalue

    def __len__(self) -> int:
        return (min if self._fillvalue is NOTSET else max)(len(column) for column in self._columns)

    def __getitem__(self, index: Any) -> Any:
        if self._fillvalue is NOTSET:
            return tuple(column[index] for column in self._columns)
        return tuple(column[index] if index < len(column) else self._fillvalue for column in self._columns)


class _Joined(Sequence[Any]):
    """Several columns, one after the other."""

    def __init__(self, columns: Sequence[Sequence[Any]]) -> None:
        self._columns = columns

    def __len__(self) -> int:
        return sum(len(column) for column in self._columns)

    def __getitem__(self, index: Any) -> Any:
        for column in self._columns:
            if index < len(column):
                return column[index]
            index -= len(column)
        raise IndexError(index)


def elements_of(value: Any, whose: str) -> Sequence[Any]:
    """What a value gives when a task is mapped over it."""
    if isinstance(value, Mapping):
        return list(value.items())
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return value
    raise UnmappableXComTypePushed(f"expected a list or a dict to map over from {whose}, got: {type(value).__name__}")


class Literal:
    """A value that templates leave alone; made with `literal(value)`."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def resolve(self, context: Mapping[str, Any]) -> Any:
        return self.value


def literal(value: Any) -> Literal:
    """Keep a value from being rendered."""
    return Literal(value)


def references_in(value: Any) -> Iterator[ResultExpression]:
    """Every reference inside a value, through lists, tuples, sets, dicts and objects with template fields."""
    if isinstance(value, ResultExpression):
        yield value
    elif isinstance(value, list | tuple | set | frozenset):
        for item in value:
            yield from references_in(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from references_in(item)
    elif not isinstance(value, TaskNode | type):
        for name in getattr(value, "template_fields", ()):
            yield from references_in(getattr(value, name, None))


def resolve_inside(value: Any, context: Mapping[str, Any]) -> Any:
    """The value with every reference in it resolved."""
    if isinstance(value, ResultExpression):
        return value.resolve(context)
    if type(value) in (list, tuple, set):
        return type(value)(resolve_inside(item, context) for item in value)
    if type(value) is dict:
        return {key: resolve_inside(item, context) for key, item in value.items()}
    return value
