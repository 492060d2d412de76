"""Variables as DAG files and templates read them."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from headrace.authoring.dag.context import current_engine
from headrace.authoring.dag.exceptions import AirflowNotFoundException
from headrace.authoring.dag.masking import mask_secret
from headrace.authoring.dag.secrets_backends import find_variable
from headrace.authoring.dag.xcom_arg import NOTSET


class VariableMissing(KeyError):
    """No variable of that name, and no default was given."""

    def __str__(self) -> str:
        return f"there is no variable `{self.args[0]}`"


class Variable:
    """Named values that are kept outside DAG files."""

    def __init__(self, key: str, value: Any = None, description: str | None = None) -> None:
        self.key = key
        self.value = value
        self.description = description

    @classmethod
    def get(cls, key: str, default: Any = NOTSET, deserialize_json: bool = False, *, default_var: Any = NOTSET) -> Any:
        """The variable's value; the default, or VariableMissing (a KeyError), if there is none."""
        value = find_variable(key)
        if value is None:
            fallback = default if default is not NOTSET else default_var
            if fallback is NOTSET:
                raise VariableMissing(key)
            return fallback
        if not deserialize_json or not isinstance(value, str):
            return value
        decoded = json.loads(value)
        mask_secret(decoded, key)
        return decoded

    @staticmethod
    def set(key: str, value: Any, description: str | None = None, serialize_json: bool = False) -> None:
        """Create or replace a variable. Only a running task can do that."""
        text = json.dumps(value, indent=2) if serialize_json else str(value)
        engine = _engine_for("set a variable")
        mask_secret(value, key)
        more = {} if description is None else {"description": description}
        engine.ask("set_variable", name=key, value=text, **more)

    @classmethod
    def update(cls, key: str, value: Any, serialize_json: bool = False) -> None:
        """Replace a variable that exists."""
        cls.get(key)
        cls.set(key, value, serialize_json=serialize_json)

    @staticmethod
    def delete(key: str) -> int:
        """Delete a variable; how many there were."""
        return int(_engine_for("delete a variable").ask("delete_variable", name=key) or 0)

    @staticmethod
    def keys(prefix: str = "") -> list[str]:
        """The names of the variables that the engine has."""
        return list(_engine_for("list the variables").ask("list_variables", prefix=prefix))

    @classmethod
    def setdefault(cls, key: str, default: Any, description: str | None = None, deserialize_json: bool = False) -> Any:
        """The variable's value; if there is none, the default, which is stored."""
        value = cls.get(key, None, deserialize_json)
        if value is not None:
            return value
        cls.set(key, default, description, serialize_json=deserialize_json)
        return default


def _engine_for(what: str) -> Any:
    engine = current_engine()
    if engine is None:
        raise RuntimeError(f"cannot {what} here: no task is running")
    return engine


class Lookup:
    """`var.value.name` and `conn.name` in templates: attributes that are looked up by name."""

    def __init__(self, find: Callable[[str], Any]) -> None:
        self._find = find

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self._find(name)

    def __getitem__(self, name: str) -> Any:
        return self._find(name)

    def get(self, name: str, default: Any = None) -> Any:
        """The value, or the default if there is none."""
        try:
            return self._find(name)
        except (KeyError, AirflowNotFoundException):
            return default


class VariableLookup:
    """`var` in templates."""

    def __init__(self) -> None:
        self.value = Lookup(Variable.get)
        self.json = Lookup(lambda name: Variable.get(name, deserialize_json=True))
