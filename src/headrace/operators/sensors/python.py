"""Waiting for a Python function to say yes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, ClassVar

from headrace.authoring.dag import Context
from headrace.operators.python import arguments_for
from headrace.operators.sensors.poking import BaseSensorOperator, PokeReturnValue


class PythonSensor(BaseSensorOperator):
    """Calls a function until it returns something true; a PokeReturnValue also gives the task's result.

    `@task.sensor` makes one of a function.
    """

    operator_name = "python_sensor"
    shown_fields: ClassVar[Sequence[str]] = ("callable_name", *BaseSensorOperator.shown_fields)
    template_fields: Sequence[str] = ("templates_dict", "op_args", "op_kwargs")

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
        self.op_args: Any = () if op_args is None else op_args
        self.op_kwargs: Any = {} if op_kwargs is None else op_kwargs
        self.templates_dict = templates_dict

    @property
    def callable_name(self) -> str:
        name: str = getattr(self.python_callable, "__name__", type(self.python_callable).__name__)
        return name

    def poke(self, context: Context) -> PokeReturnValue:
        if self.templates_dict:
            context["templates_dict"] = self.templates_dict
        args = list(self.op_args)
        found = self.python_callable(*args, **arguments_for(self.python_callable, args, dict(self.op_kwargs), context))
        return found if isinstance(found, PokeReturnValue) else PokeReturnValue(bool(found))
