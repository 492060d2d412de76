"""Parameters of DAGs and tasks: defaults with an optional description and schema, and references to them."""

from __future__ import annotations

from collections.abc import ItemsView, Mapping, ValuesView
from typing import Any

from headrace.authoring.dag.exceptions import ParamValidationError
from headrace.authoring.dag.xcom_arg import NOTSET
from headrace.definition import schema_problem


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
        self.schema: dict[str, Any] = _as_json({**(schema or {}), **kwargs})

    @property
    def has_value(self) -> bool:
        return self.value is not NOTSET

    def resolve(self, value: Any = NOTSET, suppress_exception: bool = False) -> Any:
        """The given value, or else the default, checked against the schema."""
        chosen = self.value if value is NOTSET else value
        problem = "it has no value" if chosen is NOTSET else schema_problem(chosen, self.schema)
        if problem is None:
            return chosen
        if suppress_exception:
            return None
        raise ParamValidationError(f"parameter is not valid: {problem}")

    def dump(self) -> dict[str, Any]:
        """Everything about it as plain data."""
        return {"value": self.value if self.has_value else None, "description": self.description, "schema": self.schema}

    def __copy__(self) -> Param:
        return Param(self.value, self.description, self.schema)

    def __repr__(self) -> str:
        return f"<Param {self.value!r}>"


def _as_json(value: Any) -> Any:
    """The value with the keys that JSON gives it: `{1: "one"}` as labels of values is common."""
    if isinstance(value, Mapping):
        return {_key(key): _as_json(one) for key, one in value.items()}
    return [_as_json(one) for one in value] if isinstance(value, list | tuple) else value


def _key(key: Any) -> Any:
    if key is None or isinstance(key, bool):
        return {None: "null", True: "true", False: "false"}[key]
    return str(key) if isinstance(key, int | float) else key


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
            self._check(key, known, value)
            super().__setitem__(key, Param(value, known.description, known.schema))
        else:
            super().__setitem__(key, Param(value))

    def __getitem__(self, key: str) -> Any:
        return self._check(key, self.get_param(key))

    def get(self, key: str, default: Any = None) -> Any:
        return self[key] if key in self else default

    def items(self) -> ItemsView[str, Any]:  # type: ignore[override]
        return ItemsView(self)

    def values(self) -> ValuesView[Any]:  # type: ignore[override]
        return ValuesView(self)

    def _check(self, key: str, param: Param, value: Any = NOTSET) -> Any:
        try:
            return param.resolve(value)
        except ParamValidationError as error:
            raise ParamValidationError(f"parameter `{key}`: {error}".replace(": parameter is not", " is not")) from None

    def validate(self) -> dict[str, Any]:
        """Plain values of all parameters; ParamValidationError if one has none or a wrong one."""
        return {key: self[key] for key in self}

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
        """Plain values, unchecked; parameters that have none are left out."""
        return {key: param.value for key, param in self.params().items() if param.has_value}

    def schemas(self) -> dict[str, dict[str, Any]]:
        """What is asked of the values, by name: of those that have a schema, a description, or no value."""
        return {
            key: {**({"description": param.description} if param.description else {}), **param.schema}
            for key, param in self.params().items()
            if param.schema or param.description or not param.has_value
        }


def merged_params(of_dag: ParamsDict, of_task: ParamsDict, conf: Mapping[str, Any]) -> dict[str, Any]:
    """What a task sees as `params`: the DAG's under its own under what the run was started with, all checked."""
    if not of_dag and not of_task:
        return dict(conf)
    if not of_dag.schemas() and not of_task.schemas():
        return of_dag.dump() | of_task.dump() | dict(conf)
    merged = ParamsDict(of_dag.params() | of_task.params())
    merged.update(conf)
    return merged.validate()


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
