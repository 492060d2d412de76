"""Tasks that call a Python function."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from types import CoroutineType, GeneratorType
from typing import Any, ClassVar

from headrace.authoring.dag import BaseOperator, Context
from headrace.authoring.dag.assets import Metadata
from headrace.authoring.signatures import taken_by
from headrace.handoff import say

log = logging.getLogger("airflow.task")


class CallsFunction(BaseOperator):
    """What every task has that calls a function: the function, and what it is called with."""

    shown_fields: ClassVar[Sequence[str]] = ("callable_name",)
    template_fields: Sequence[str] = ("templates_dict", "op_args", "op_kwargs")
    stored_arguments: ClassVar[Sequence[str]] = ("op_kwargs",)
    """What the constructor below only stores, so that a mapped task need not call it for every instance."""

    def __init__(
        self,
        *,
        python_callable: Callable[..., Any],
        op_args: Collection[Any] | None = None,
        op_kwargs: Mapping[str, Any] | None = None,
        templates_dict: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if not callable(python_callable):
            raise TypeError(f"expected `python_callable` of task `{self.task_id}` to be a function")
        self.python_callable = python_callable
        # Not copied if it is a reference: then the whole collection is the result of another task.
        self.op_args: Any = () if op_args is None else op_args
        self.op_kwargs: Any = {} if op_kwargs is None else op_kwargs
        self.templates_dict = templates_dict

    @property
    def callable_name(self) -> str:
        name: str = getattr(self.python_callable, "__name__", type(self.python_callable).__name__)
        return name

    def prepare_processes(self) -> None:
        # Functions that are written in C need not tell what they take.
        with contextlib.suppress(ValueError):
            taken_by(self.python_callable)

    def call_function(self, context: Context) -> Any:
        """Call the function with its arguments and with what it wants from the context."""
        args = list(self.op_args)
        kwargs = arguments_for(self.python_callable, args, dict(self.op_kwargs), context)
        return self.python_callable(*args, **kwargs)


class PythonOperator(CallsFunction):
    """Calls a function. Arguments that are named like something in the context are filled from it."""

    operator_name = "python"
    ui_color = "#ffefeb"
    stored_arguments: ClassVar[Sequence[str]] = CallsFunction.stored_arguments

    def __init__(
        self,
        *,
        templates_exts: Sequence[str] | None = None,
        show_return_value_in_logs: bool = True,
        provide_context: bool | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.show_return_value_in_logs = show_return_value_in_logs
        if templates_exts:
            self.template_ext = templates_exts

    def execute(self, context: Context) -> Any:
        """What the function returns."""
        if self.templates_dict:
            context["templates_dict"] = self.templates_dict
        value = self.call(context)
        if self.show_return_value_in_logs and value is not None:
            say(log, "returned: %s", _shortened(value))
        return value

    def call(self, context: Context) -> Any:
        """Call the function; a coroutine is run to its end."""
        value = self.call_function(context)
        if isinstance(value, CoroutineType):
            # Only async task functions pay for the event loop.
            import asyncio

            return asyncio.run(value)
        if self.outlets and isinstance(value, GeneratorType):
            return _heard(value, context["outlet_events"])
        return value


def _heard(said: Any, outlet_events: Any) -> Any:
    """What a function returns that yields what it has to say about its outlets."""
    while True:
        try:
            one = next(said)
        except StopIteration as end:
            return end.value
        if isinstance(one, Metadata):
            if one.alias is not None:
                outlet_events[one.alias].add(one.asset, extra=one.extra)
            else:
                outlet_events[one.asset].extra.update(one.extra)


def arguments_for(
    function: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any], context: Context
) -> dict[str, Any]:
    """The keyword arguments of a call: those given, and those that the function wants from the context."""
    try:
        names, takes_all = taken_by(function)
    except ValueError:
        # Some functions that are written in C do not tell what they take.
        return kwargs
    for name in names[: len(args)]:
        if name in context:
            raise ValueError(f"`{name}` comes from the context, so it cannot be passed by position")
    chosen: dict[str, Any] = {}
    for name in context if takes_all else names:
        if name in context and name not in kwargs:
            chosen[name] = context[name]
    return chosen | kwargs


def _shortened(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 1000 else f"{text[:1000]}… ({len(text)} characters)"
