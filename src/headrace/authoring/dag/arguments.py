"""How operators get their keyword arguments: what was written, then default arguments by name."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from headrace.authoring.dag.scope import defaults_for
from headrace.authoring.signatures import signature_of

_NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


def parameter_names(function: Callable[..., Any]) -> frozenset[str]:
    """The names that a constructor takes, without `self` and without variable arguments."""
    parameters = list(signature_of(function).parameters.values())[1:]
    return frozenset(parameter.name for parameter in parameters if parameter.kind in _NAMED)


_accepted: dict[type, frozenset[str]] = {}


def accepted_names(operator_class: type) -> frozenset[str]:
    """The names that a class and its parents take together."""
    if operator_class not in _accepted:
        parents = [cls for cls in operator_class.__mro__ if cls is not object and "__init__" in vars(cls)]
        _accepted[operator_class] = frozenset().union(*(parameter_names(vars(cls)["__init__"]) for cls in parents))
    return _accepted[operator_class]


def with_defaults(constructor: Callable[..., None]) -> Callable[..., None]:
    """Wrap one class's constructor: keywords only, and default arguments for the names in *its* signature.

    Each class in a hierarchy is wrapped by itself, so that what a subclass passes on to its parent explicitly is
    stronger than a default of the same name.
    """
    names = parameter_names(constructor)

    @functools.wraps(constructor)
    def construct(self: Any, *args: Any, **kwargs: Any) -> None:
        if args:
            raise TypeError(f"{type(self).__name__} takes keyword arguments only, got {len(args)} positional")
        is_outermost = "_default_args" not in self.__dict__
        if is_outermost:
            defaults = defaults_for(kwargs.get("dag"), kwargs.get("task_group"), kwargs.get("default_args"))
            self.__dict__["_default_args"] = defaults
        for name in names.intersection(self._default_args).difference(kwargs, ("params",)):
            kwargs[name] = self._default_args[name]
        constructor(self, **kwargs)
        if is_outermost:
            self.finish_construction()

    return construct
