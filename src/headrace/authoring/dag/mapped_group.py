"""Mapped task groups: the tasks of one function, once for each element, index by index."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from headrace.authoring.dag.expansion import CrossProduct, Expansion, KeywordSets
from headrace.authoring.dag.group import TaskGroup, TaskGroupFunction, group_maker
from headrace.authoring.dag.node import TaskNode
from headrace.authoring.dag.xcom_arg import NOTSET, ResultExpression
from headrace.authoring.signatures import signature_of
from headrace.definition import Length
from headrace.errors import did_you_mean


class MappedTaskGroup(TaskGroup):
    """A group whose tasks are multiplied together. Each of its instances waits only for those of its own index."""

    def __init__(self, *, expansion: Expansion, **options: Any) -> None:
        super().__init__(**options)
        self.expansion = expansion
        around = self.parent_group.mapped_group if self.parent_group is not None else None
        if around is not None:
            raise NotImplementedError(
                f"task group `{self.group_id}` cannot be mapped inside of the mapped task group `{around.group_id}`"
            )

    @property
    def mapped_group(self) -> MappedTaskGroup:
        return self

    def __exit__(self, *exc_info: object) -> None:
        super().__exit__(*exc_info)
        for source in self.expansion.tasks():
            self.set_upstream(source)


class GroupArgument(ResultExpression):
    """An argument of a mapped group's function: what it is for an instance is known when that instance runs."""

    def __init__(self, expansion: Expansion, name: str, default: Any) -> None:
        self._expansion = expansion
        self.name = name
        self._default = default

    def tasks(self) -> Iterator[TaskNode]:
        return self._expansion.tasks()

    def length(self) -> Length:
        raise NotImplementedError(f"a task cannot be mapped over the argument `{self.name}` of a mapped task group")

    def resolve(self, context: Mapping[str, Any]) -> Any:
        arguments, _ = self._expansion.arguments(context["ti"].map_index, context)
        if self.name in arguments:
            return arguments[self.name]
        if self._default is NOTSET:
            raise ValueError(f"element {context['ti'].map_index} of expand_kwargs() has no argument `{self.name}`")
        return self._default

    def __getitem__(self, item: Any) -> Any:
        raise TypeError(f"{self!r} is known only when a task of the group runs: take `[{item!r}]` of it inside a task")

    def __repr__(self) -> str:
        return f"<argument {self.name} of a mapped task group>"


class MappableGroupFunction(TaskGroupFunction):
    """`@task_group` with `partial`, `expand` and `expand_kwargs`."""

    def __init__(
        self, function: Callable[..., Any], options: dict[str, Any], fixed: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__(function, options)
        self._fixed = dict(fixed or {})
        self._signature = signature_of(function)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return super().__call__(*args, **{**self._fixed, **kwargs})

    def override(self, **options: Any) -> MappableGroupFunction:
        """The same group function with other options."""
        return MappableGroupFunction(self.function, {**self.options, **options}, self._fixed)

    def partial(self, **kwargs: Any) -> MappableGroupFunction:
        """Fix some of the function's arguments, to map over others."""
        self._check_names(kwargs)
        self._refuse_twice(kwargs)
        return MappableGroupFunction(self.function, self.options, {**self._fixed, **kwargs})

    def expand(self, **mapped: Any) -> Any:
        """The whole group once for every combination of the arguments' elements."""
        self._check_names(mapped)
        self._refuse_twice(mapped)
        return self._make(CrossProduct(mapped), list(mapped))

    def expand_kwargs(self, kwargs: Any, *, strict: bool = True) -> Any:
        """The whole group once for every set of arguments."""
        sets = KeywordSets(kwargs)
        self._check_names(dict.fromkeys(sets.names()))
        return self._make(sets, [name for name in self._signature.parameters if name not in self._fixed])

    def _make(self, expansion: Expansion, names: list[str]) -> Any:
        parameters = self._signature.parameters
        arguments = {name: GroupArgument(expansion, name, _default(parameters.get(name))) for name in names}
        with MappedTaskGroup(expansion=expansion, **self.group_options) as group:
            value = self.function(**{**self._fixed, **arguments})
        return group if value is None else value

    def _check_names(self, given: Mapping[str, Any]) -> None:
        parameters = self._signature.parameters
        if any(one.kind is inspect.Parameter.VAR_KEYWORD for one in parameters.values()):
            return
        for name in given.keys() - parameters.keys():
            hint = did_you_mean(name, parameters)
            raise TypeError(
                f"task group `{self.function.__name__}` has no argument `{name}`" + (f", {hint}" if hint else "")
            )

    def _refuse_twice(self, given: Mapping[str, Any]) -> None:
        for name in given.keys() & self._fixed.keys():
            raise TypeError(
                f"task group `{self.function.__name__}` got `{name}` both in partial() and as a mapped argument"
            )


def _default(parameter: inspect.Parameter | None) -> Any:
    return NOTSET if parameter is None or parameter.default is inspect.Parameter.empty else parameter.default


def task_group(group_id: Any = None, **options: Any) -> Any:
    """Turn a function into a task group: `@task_group` or `@task_group(group_id="load", ...)`."""
    return group_maker(MappableGroupFunction, group_id, options)
