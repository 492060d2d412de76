"""Mapped tasks: `Operator.partial(...).expand(...)`, one task in the file and many when it runs."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Mapping
from typing import Any

from headrace.authoring.dag import scope
from headrace.authoring.dag.arguments import accepted_names
from headrace.authoring.dag.expansion import CrossProduct, Expansion, KeywordSets
from headrace.authoring.dag.node import TaskNode, written_at
from headrace.authoring.dag.rules import TriggerRule
from headrace.authoring.dag.xcom_arg import XComArg, references_in
from headrace.errors import did_you_mean


class OperatorPartial:
    """An operator with its constant arguments, waiting for the mapped ones."""

    def __init__(self, operator_class: Any, settings: Any, kwargs: dict[str, Any], into: str | None = None) -> None:
        self.operator_class = operator_class
        self.settings = settings
        self.kwargs = kwargs
        self.into = into

    def expand(self, **mapped: Any) -> MappedOperator:
        """One instance for every combination of the arguments' elements."""
        return self._make(CrossProduct(mapped), strict=True)

    def expand_kwargs(self, kwargs: Any, *, strict: bool = True) -> MappedOperator:
        """One instance for every set of keyword arguments."""
        return self._make(KeywordSets(kwargs), strict)

    def _make(self, expansion: Expansion, strict: bool) -> MappedOperator:
        self._check_names(expansion.names(), strict)
        return MappedOperator(self, expansion, strict)

    def _check_names(self, names: frozenset[str], strict: bool) -> None:
        owner = f"{self.operator_class.__name__} `{self.settings.task_id}`"
        own = accepted_names(self.operator_class) - accepted_names(type(self.settings))
        for name in sorted(names):
            if self.into is None and name not in own:
                hint = did_you_mean(name, own)
                raise TypeError(f"{owner} cannot be mapped over `{name}`" + (f", {hint}" if hint else ""))
            given = self.kwargs.get(self.into, {}) if self.into is not None else self.kwargs
            if strict and name in given and name not in self.settings._default_args:
                raise TypeError(f"{owner} got `{name}` both in partial() and as a mapped argument")


class MappedOperator(TaskNode):
    """A task that is multiplied over upstream results when it opens."""

    is_mapped = True
    _model: Any = None
    """An operator without the mapped arguments, where its class only stores them."""

    def __init__(self, partial: OperatorPartial, expansion: Expansion, strict: bool) -> None:
        self.settings = partial.settings
        """An operator that holds the arguments which all operators have: retries, pool, …"""
        self.operator_class = partial.operator_class
        self.partial_kwargs = partial.kwargs
        self.into = partial.into
        self.expansion = expansion
        self.strict = strict
        self.place = written_at()
        self.trigger_rule = self.settings.trigger_rule
        self.multiple_outputs = self.settings.multiple_outputs
        dag, group = scope.home_of(partial.kwargs.get("dag"), partial.kwargs.get("task_group"))
        self.task_id = self.settings.task_id if group is None else group.child_id(self.settings.task_id)
        if self.settings.task_display_name == self.settings.task_id:
            self.settings.task_display_name = self.task_id
        self.settings.task_id = self.task_id
        self.join_graph(dag, group)
        if self.mapped_group is not None:
            raise NotImplementedError(
                f"task `{self.task_id}` cannot be mapped inside of the mapped task group"
                f" `{self.mapped_group.group_id}`: the group's tasks are multiplied already"
            )
        self._wait_for_sources()

    def _wait_for_sources(self) -> None:
        sources = list(self.expansion.tasks())
        if sources and self.trigger_rule is TriggerRule.ALWAYS:
            raise ValueError(f"task `{self.task_id}` is mapped over results, so its trigger rule cannot be `always`")
        for reference in references_in(self.partial_kwargs):
            sources.extend(reference.tasks())
        for source in sources:
            source.connect(self)

    @property
    def output(self) -> XComArg:
        """What all instances return, in order."""
        return XComArg(self)

    @property
    def task_type(self) -> str:
        name: str = self.operator_class.__name__
        return name

    def __repr__(self) -> str:
        return f"<Mapped {self.task_type}: {self.task_id}>"

    def prepare_processes(self) -> None:
        if self.into is None or not _only_stores(self.operator_class, self.into):
            return
        # What is wrong with the other arguments is said where a task fails by it.
        with contextlib.suppress(Exception):
            model = self._constructed(self._arguments({}))
            model.prepare_processes()
            self._model = model

    def instance(self, index: int, context: Mapping[str, Any], *, is_only_one: bool) -> tuple[Any, list[Any]]:
        """The operator of one instance, and those of its arguments that must not be rendered.

        The only one that this process makes may use up what was prepared for it.
        """
        mapped, computed = self.expansion.arguments(index, context)
        kwargs = self._arguments(mapped)
        if self._model is None:
            return self._constructed(kwargs), computed
        operator = self._model if is_only_one else copy.copy(self._model)
        operator.__dict__[self.into] = kwargs[self.into]
        return operator, computed

    def _arguments(self, mapped: Mapping[str, Any]) -> dict[Any, Any]:
        kwargs = {name: value for name, value in self.partial_kwargs.items() if name not in ("dag", "task_group")}
        given = kwargs.get(self.into, {}) if self.into is not None else kwargs
        if self.strict and not isinstance(self.expansion, CrossProduct):
            self._refuse_twice(set(mapped) & set(given) - set(self.settings._default_args))
        if self.into is not None:
            kwargs[self.into] = {**given, **mapped}
        else:
            kwargs.update(mapped)
        return kwargs

    def _constructed(self, kwargs: dict[str, Any]) -> Any:
        with scope.outside():
            operator = self.operator_class(**{**kwargs, "task_id": self.task_id})
        for name in ("dag", "task_group", "upstream_task_ids", "downstream_task_ids", "place"):
            operator.__dict__[name] = self.__dict__[name]
        return operator

    def _refuse_twice(self, names: set[str]) -> None:
        if names:
            listed = ", ".join(f"`{name}`" for name in sorted(names))
            raise TypeError(f"task `{self.task_id}` got {listed} both in partial() and as a mapped argument")


def _only_stores(operator_class: Any, name: str) -> bool:
    """Whether the constructor of a class does nothing with an argument but to make it an attribute."""
    author = next(cls for cls in operator_class.__mro__ if "__init__" in vars(cls))
    return name in vars(author).get("stored_arguments", ())
