"""What providers make their task decorators of: an operator that gets its arguments from a function."""

from __future__ import annotations

import ast
import functools
import inspect
import textwrap
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, ClassVar

from headrace.authoring.dag import BaseOperator, Context, scope
from headrace.authoring.dag.taskflow import TaskFunction
from headrace.authoring.signatures import signature_of


class KeywordParameters:
    """The keyword arguments of a call; `unpacking` gives them."""

    def __init__(self, kwargs: Mapping[str, Any]) -> None:
        self._kwargs = kwargs

    @classmethod
    def determine(cls, func: Callable[..., Any], args: Collection[Any], kwargs: Mapping[str, Any]) -> KeywordParameters:
        """Those of `kwargs` that the function takes; none of them may be filled by position already."""
        parameters = signature_of(func).parameters
        taken = [one.name for one in parameters.values() if one.kind not in (one.KEYWORD_ONLY, one.VAR_KEYWORD)]
        for name in taken[: len(args)]:
            if name in kwargs:
                raise ValueError(f"`{name}` comes from the context, so it cannot be passed by position")
        if any(one.kind is one.VAR_KEYWORD for one in parameters.values()):
            return cls(kwargs)
        return cls({name: kwargs[name] for name in parameters if name in kwargs})

    def unpacking(self) -> Mapping[str, Any]:
        return self._kwargs


def determine_kwargs(func: Callable[..., Any], args: Collection[Any], kwargs: Mapping[str, Any]) -> Mapping[str, Any]:
    """What of `kwargs` to call the function with."""
    return KeywordParameters.determine(func, args, kwargs).unpacking()


def make_kwargs_callable(func: Callable[..., Any]) -> Callable[..., Any]:
    """The same function, which ignores keyword arguments that it does not know."""

    @functools.wraps(func)
    def call(*args: Any, **kwargs: Any) -> Any:
        return func(*args, **determine_kwargs(func, args, kwargs))

    return call


def get_unique_task_id(task_id: str, dag: Any = None, task_group: Any = None) -> str:
    """The id, with a number behind it if another task of the DAG has it already."""
    dag, group = scope.home_of(dag, task_group)
    if dag is None:
        return task_id
    free: str = dag.ids.free_variant(group.child_id(task_id)).removeprefix(group.child_prefix)
    return free


def is_async_callable(func: Any) -> bool:
    """Whether a call of it must be awaited; looks through partials, wrappers and task functions."""
    func = getattr(func, "function", func)
    while isinstance(func, functools.partial):
        func = func.func
    if not callable(func):
        return False
    func = inspect.unwrap(func)
    called = func if inspect.isfunction(func) or inspect.ismethod(func) else type(func).__call__
    return inspect.iscoroutinefunction(inspect.unwrap(called))


class DecoratedOperator(BaseOperator):
    """Goes before another operator in the bases of a class: takes the function, leaves the rest to the other one."""

    template_fields: Sequence[str] = ("op_args", "op_kwargs")
    template_fields_renderers: ClassVar[dict[str, str]] = {"op_args": "py", "op_kwargs": "py"}
    custom_operator_name: str = ""

    def __init__(
        self,
        *,
        python_callable: Callable[..., Any],
        task_id: str,
        op_args: Collection[Any] | None = None,
        op_kwargs: Mapping[str, Any] | None = None,
        kwargs_to_upstream: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        self.python_callable = python_callable
        self.op_args: Any = op_args or []
        self.op_kwargs: Any = op_kwargs or {}
        task_id = get_unique_task_id(task_id, kwargs.get("dag"), kwargs.get("task_group"))
        super().__init__(task_id=task_id, **(kwargs_to_upstream or {}), **kwargs)

    @property
    def is_async(self) -> bool:
        return is_async_callable(self.python_callable)

    def execute(self, context: Context) -> Any:
        """What the operator behind this one does."""
        return self._handle_output(super().execute(context))

    def _handle_output(self, return_value: Any) -> Any:
        return return_value

    def determine_kwargs(self, context: Mapping[str, Any]) -> Mapping[str, Any]:
        """What to call the function with, besides its positional arguments."""
        return determine_kwargs(self.python_callable, self.op_args, context)

    def get_python_source(self) -> str:
        """The function's source without its decorators, to be sent elsewhere."""
        text = textwrap.dedent(inspect.getsource(self.python_callable))
        (definition,) = ast.parse(text).body
        return "".join(text.splitlines(keepends=True)[definition.lineno - 1 :]).rstrip("\n") + "\n"


class ProvidedTaskFunction(TaskFunction):
    """A task function of a provider's decorator."""

    def _bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        # Other operators call the function with arguments of their own, which only they know.
        if issubclass(self.operator_class, DecoratedOperator):
            super()._bind(args, kwargs)


def task_decorator_factory(
    python_callable: Callable[..., Any] | None = None,
    *,
    multiple_outputs: bool | None = None,
    decorated_operator_class: type[BaseOperator],
    **kwargs: Any,
) -> Any:
    """A task function that makes tasks of this class; without a function, the decorator for one."""
    options = {"multiple_outputs": multiple_outputs, **kwargs}
    if python_callable is None:
        return lambda function: ProvidedTaskFunction(function, decorated_operator_class, options)
    if not callable(python_callable) or isinstance(python_callable, type):
        raise TypeError("task decorators take keyword arguments only")
    return ProvidedTaskFunction(python_callable, decorated_operator_class, options)
