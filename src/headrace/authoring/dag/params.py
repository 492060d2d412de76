"""Parameters of DAGs and tasks: defaults with an optional description and schema, and references to them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from headrace.authoring.dag.exceptions import ParamValidationError
from headrace.authoring.dag.xcom_arg import NOTSET


class Param:
    """A parameter's default value, with a description and a JSON schema for forms."""

    def __init__(
        self,
        default: Any = NOTSET,
        description: str | None = None,
        schema: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        self.value = default
        self.description = description
        self.schema: dict[str, Any] = {**(schema or {}), **kwargs}

    @property
    def has_value(self) -> bool:
        return self.value is not NOTSET

    def resolve(self, value: Any = NOTSET, suppress_exception: bool = False) -> Any:
        """The given value, or else the default, checked against the simple parts of the schema."""
        chosen = self.value if value is NOTSET else value
        problem = "it has no value" if chosen is NOTSET else _problem(chosen, self.schema)
        if problem is None:
            return chosen
        if suppress_exception:
            return None
        raise ParamValidationError(f"parameter is not valid: {problem}")


_TYPES: dict[str, type | tuple[type, ...]] = {
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "array": (list, tuple),
    "object": dict,
    "null": type(None),
}


def _problem(value: Any, schema: Mapping[str, Any]) -> str | None:
    wanted = schema.get("type")
    if wanted is not None:
        names = [wanted] if isinstance(wanted, str) else list(wanted)
        if not any(_is_of_type(value, name) for name in names):
            return f"expected {' or '.join(names)}, got: {value!r}"
    if "enum" in schema and value not in schema["enum"]:
        return f"expected one of {schema['enum']!r}, got: {value!r}"
    if "const" in schema and value != schema["const"]:
        return f"expected {schema['const']!r}, got: {value!r}"
    return _size_problem(value, schema)


def _is_of_type(value: Any, name: str) -> bool:
    # True and False are ints for Python, but not for JSON.
    if isinstance(value, bool):
        return name == "boolean"
    return isinstance(value, _TYPES.get(name, object))


def _size_problem(value: Any, schema: Mapping[str, Any]) -> str | None:
    if isinstance(value, int | float) and not isinstance(value, bool):
        if "minimum" in schema and value < schema["minimum"]:
            return f"expected at least {schema['minimum']}, got: {value}"
        if "maximum" in schema and value > schema["maximum"]:
            return f"expected at most {schema['maximum']}, got: {value}"
    if isinstance(value, str):
        if len(value) < schema.get("minLength", 0):
            return f"expected at least {schema['minLength']} characters, got: {value!r}"
        if len(value) > schema.get("maxLength", len(value)):
            return f"expected at most {schema['maxLength']} characters, got: {value!r}"
        if "pattern" in schema and not re.search(schema["pattern"], value):
            return f"expected something that matches `{schema['pattern']}`, got: {value!r}"
    return None


class ParamsDict(dict[str, Any]):
    """Parameters by name. Reading gives values; `get_param` gives the Param with its description and schema."""

    def __init__(self, values: Mapping[str, Any] | None = None) -> None:
        super().__init__()
        self.update(values or {})

    def __setitem__(self, key: str, value: Any) -> None:
        known = dict.get(self, key)
        if isinstance(value, Param):
            super().__setitem__(key, value)
        elif isinstance(known, Param):
            known.resolve(value)
            super().__setitem__(key, Param(value, known.description, known.schema))
        else:
            super().__setitem__(key, Param(value))

    def __getitem__(self, key: str) -> Any:
        return self.get_param(key).resolve()

    def get_param(self, key: str) -> Param:
        param: Param = super().__getitem__(key)
        return param

    def update(self, *args: Any, **kwargs: Any) -> None:
        for source in args:
            params = source.params() if isinstance(source, ParamsDict) else dict(source)
            for key, value in params.items():
                self[key] = value
        for key, value in kwargs.items():
            self[key] = value

    def params(self) -> dict[str, Param]:
        return {key: self.get_param(key) for key in self}

    def dump(self) -> dict[str, Any]:
        """Plain values; parameters that have none are left out."""
        return {key: param.resolve() for key, param in self.params().items() if param.has_value}


class DagParam:
    """A reference to one of a DAG's parameters; becomes its value when a task is run."""

    def __init__(self, name: str, default: Any = NOTSET) -> None:
        self.name = name
        self.default = default

    def resolve(self, context: Mapping[str, Any]) -> Any:
        conf = context["dag_run"].conf
        if self.name in conf:
            return conf[self.name]
        if self.default is not NOTSET:
            return self.default
        if self.name in context["params"]:
            return context["params"][self.name]
        raise ParamValidationError(f"parameter `{self.name}` has no value: the run was started without it")
