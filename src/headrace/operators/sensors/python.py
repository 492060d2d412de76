"""Waiting for a Python function to say yes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from headrace.authoring.dag import Context
from headrace.operators.python import CallsFunction
from headrace.operators.sensors.poking import BaseSensorOperator, PokeReturnValue


class PythonSensor(CallsFunction, BaseSensorOperator):
    """Calls a function until it returns something true; a PokeReturnValue also gives the task's result.

    `@task.sensor` makes one of a function.
    """

    operator_name = "python_sensor"
    shown_fields: ClassVar[Sequence[str]] = (*CallsFunction.shown_fields, *BaseSensorOperator.shown_fields)

    def poke(self, context: Context) -> PokeReturnValue:
        if self.templates_dict:
            context["templates_dict"] = self.templates_dict
        found = self.call_function(context)
        return found if isinstance(found, PokeReturnValue) else PokeReturnValue(bool(found))
