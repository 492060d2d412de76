"""Variables and connections, as DAG files read them: from the environment, then from the engine."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from typing import Any

from headrace.authoring.dag.context import current_engine
from headrace.authoring.dag.exceptions import AirflowNotFoundException
from headrace.authoring.dag.xcom_arg import NOTSET


class VariableMissing(KeyError):
    """No variable of that name, and no default was given."""

    def __str__(self) -> str:
        return f"there is no variable `{self.args[0]}`"


class Variable:
    """Named values that are kept outside DAG files."""

    def __init__(self, key: str, value: Any = None) -> None:
        self.key = key
        self.value = value

    @classmethod
    def get(cls, key: str, default: Any = NOTSET, deserialize_json: bool = False, *, default_var: Any = NOTSET) -> Any:
        """The variable's value; the default, or VariableMissing (a KeyError), if there is none."""
        value = _find_variable(key)
        if value is None:
            fallback = default if default is not NOTSET else default_var
            if fallback is NOTSET:
                raise VariableMissing(key)
            return fallback
        return json.loads(value) if deserialize_json and isinstance(value, str) else value

    @staticmethod
    def set(key: str, value: Any, description: str | None = None, serialize_json: bool = False) -> None:
        """Create or replace a variable. Only a running task can do that."""
        text = json.dumps(value, indent=2) if serialize_json else str(value)
        _engine_for("set a variable").ask("set_variable", name=key, value=text)

    @staticmethod
    def delete(key: str) -> None:
        _engine_for("delete a variable").ask("delete_variable", name=key)

    @classmethod
    def setdefault(cls, key: str, default: Any, description: str | None = None, deserialize_json: bool = False) -> Any:
        """The variable's value; if there is none, the default, which is stored."""
        value = cls.get(key, None, deserialize_json)
        if value is not None:
            return value
        cls.set(key, default, description, serialize_json=deserialize_json)
        return default


def _find_variable(key: str) -> Any:
    value = os.environ.get(f"AIRFLOW_VAR_{key.upper()}")
    engine = current_engine()
    if value is not None or engine is None:
        return value
    try:
        return engine.ask("get_variable", name=key)
    except LookupError:
        return None


def _engine_for(what: str) -> Any:
    engine = current_engine()
    if engine is None:
        raise RuntimeError(f"cannot {what} here: no task is running")
    return engine


class Connection:
    """How to reach another system."""

    def __init__(
        self,
        conn_id: str | None = None,
        conn_type: str | None = None,
        description: str | None = None,
        host: str | None = None,
        login: str | None = None,
        password: str | None = None,
        schema: str | None = None,
        port: int | None = None,
        extra: str | Mapping[str, Any] | None = None,
    ) -> None:
        self.conn_id = conn_id
        self.conn_type = conn_type
        self.description = description
        self.host = host
        self.login = login
        self.password = password
        self.schema = schema
        self.port = int(port) if port else None
        self.extra = extra if isinstance(extra, str | None) else json.dumps(extra)

    @property
    def extra_dejson(self) -> dict[str, Any]:
        loaded: dict[str, Any] = json.loads(self.extra) if self.extra else {}
        return loaded

    def __repr__(self) -> str:
        return f"<Connection {self.conn_id}>"

    @classmethod
    def get(cls, conn_id: str) -> Connection:
        """The connection of that name; AirflowNotFoundException if there is none."""
        text = os.environ.get(f"AIRFLOW_CONN_{conn_id.upper()}")
        if text is not None:
            return _from_json(conn_id, text) if text.lstrip().startswith("{") else _from_uri(conn_id, text)
        engine = current_engine()
        if engine is not None:
            try:
                return cls(**{**engine.ask("get_connection", name=conn_id), "conn_id": conn_id})
            except LookupError:
                pass
        raise AirflowNotFoundException(f"there is no connection `{conn_id}`")


def _from_json(conn_id: str, text: str) -> Connection:
    return Connection(**{**json.loads(text), "conn_id": conn_id})


def _from_uri(conn_id: str, uri: str) -> Connection:
    # Only environment connections in URI form need it.
    from urllib.parse import parse_qsl, unquote, urlsplit

    parts = urlsplit(uri)
    query = dict(parse_qsl(parts.query, keep_blank_values=True))
    conn_type = parts.scheme.replace("-", "_")
    return Connection(
        conn_id=conn_id,
        conn_type="postgres" if conn_type == "postgresql" else conn_type,
        host=unquote(parts.hostname or "") or None,
        login=unquote(parts.username or "") or None,
        password=unquote(parts.password or "") or None,
        schema=unquote(parts.path[1:]) or None,
        port=parts.port,
        extra=query.get("__extra__") or (query or None),
    )


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
