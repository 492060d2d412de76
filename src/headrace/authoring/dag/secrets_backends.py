"""Where variables and connections are looked up: custom backends, the environment, then the engine.

Backends are other people's code and run where the DAG's own code runs. One that fails is named in the log, and the
next one is asked.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from headrace.authoring.dag.configuration import conf
from headrace.authoring.dag.connection_forms import fields_of_text
from headrace.authoring.dag.context import current_engine, is_task_running
from headrace.authoring.dag.exceptions import AirflowConfigException
from headrace.authoring.dag.logging_mixin import LoggingMixin
from headrace.authoring.dag.masking import mask_secret
from headrace.authoring.dag.value_files import read_connections, read_variables

log = logging.getLogger("airflow.secrets")

VARIABLE_PREFIXES = ("AIRFLOW_VAR_", "HEADRACE_VAR_")
CONNECTION_PREFIXES = ("AIRFLOW_CONN_", "HEADRACE_CONN_")


class BaseSecretsBackend(LoggingMixin):
    """A place of variables, connections and options. A subclass overrides what it has."""

    @staticmethod
    def build_path(path_prefix: str, secret_id: str, sep: str = "/") -> str:
        return f"{path_prefix}{sep}{secret_id}"

    def get_conn_value(self, conn_id: str, team_name: str | None = None) -> str | None:
        """A connection as a URI or as JSON."""
        raise NotImplementedError

    def get_variable(self, key: str, team_name: str | None = None) -> str | None:
        raise NotImplementedError

    def get_config(self, key: str) -> str | None:
        """The value of an option whose `…_SECRET` names it."""
        return None

    def deserialize_connection(self, conn_id: str, value: str) -> dict[str, Any]:
        """The fields of a connection out of its URI or JSON."""
        return {**fields_of_text(value), "conn_id": conn_id}

    def get_connection(self, conn_id: str, team_name: str | None = None) -> Any:
        """The connection, as an object or as its fields; None if it is not here."""
        value = self.get_conn_value(conn_id=conn_id)
        return self.deserialize_connection(conn_id, value) if value else None


class EnvironmentVariablesBackend(BaseSecretsBackend):
    """`AIRFLOW_VAR_NAME`, `AIRFLOW_CONN_NAME`."""

    def get_conn_value(self, conn_id: str, team_name: str | None = None) -> str | None:
        return _from_environment(CONNECTION_PREFIXES, conn_id)

    def get_variable(self, key: str, team_name: str | None = None) -> str | None:
        return _from_environment(VARIABLE_PREFIXES, key)


class LocalFilesystemBackend(BaseSecretsBackend):
    """JSON, YAML or `.env` files."""

    def __init__(self, variables_file_path: str | None = None, connections_file_path: str | None = None) -> None:
        self._variables = read_variables(Path(variables_file_path)) if variables_file_path else {}
        self._connections = read_connections(Path(connections_file_path)) if connections_file_path else {}

    def get_connection(self, conn_id: str, team_name: str | None = None) -> dict[str, Any] | None:
        fields = self._connections.get(conn_id)
        return None if fields is None else {**fields, "conn_id": conn_id}

    def get_variable(self, key: str, team_name: str | None = None) -> str | None:
        found = self._variables.get(key)
        return None if found is None else found[0]


def find_variable(key: str) -> Any:
    """The variable's value from the first place that has it, or None."""
    return _cached("variable", key, lambda: _find_variable(key))


def find_connection(conn_id: str) -> Any:
    """The connection (an object or its fields) from the first place that has it, or None."""
    return _cached("connection", conn_id, lambda: _find_connection(conn_id))


def _find_variable(key: str) -> Any:
    for backend in _backends():
        value = _asked(backend, "get_variable", key=key)
        if value is not None:
            mask_secret(value, key)
            return value
    return _from_engine("get_variable", key)


def _find_connection(conn_id: str) -> Any:
    for backend in _backends():
        found = _asked(backend, "get_connection", conn_id=conn_id)
        if found is not None:
            return found
    return _from_engine("get_connection", conn_id)


def _from_engine(verb: str, name: str) -> Any:
    engine = current_engine()
    if engine is None:
        return None
    try:
        return engine.ask(verb, name=name)
    except LookupError:
        return None


def _asked(backend: Any, method: str, **args: str) -> Any:
    try:
        return getattr(backend, method)(**args)
    except NotImplementedError:
        return None
    except Exception:
        log.exception("%s of %s failed; the next place is asked", method, type(backend).__name__)
        return None


_environment = EnvironmentVariablesBackend()
_made: dict[tuple[str, str, str], Any] = {}


def _backends() -> Sequence[Any]:
    custom = custom_backend()
    return (_environment,) if custom is None else (custom, _environment)


def custom_backend() -> Any:
    """The backend that the configuration names, a worker's own before the common one; None if it names none."""
    for section, key in (("workers", "secrets_backend"), ("secrets", "backend")):
        path = conf.get(section, key, fallback="")
        if path:
            arguments = conf.get(section, f"{key}_kwargs", fallback="")
            chosen = (section, path, arguments)
            if chosen not in _made:
                _made[chosen] = _make(section, key)
            return _made[chosen]
    return None


def _make(section: str, key: str) -> Any:
    kwargs = conf.getjson(section, f"{key}_kwargs", fallback={})
    if not isinstance(kwargs, dict):
        raise AirflowConfigException(f"expected the option `{section}.{key}_kwargs` to be a JSON object")
    return conf.getimport(section, key)(**kwargs)


def _find_config(name: str) -> str | None:
    backend = custom_backend()
    return None if backend is None else _asked(backend, "get_config", key=name)


conf.find_secret = _find_config


def _from_environment(prefixes: Sequence[str], name: str) -> str | None:
    found = (os.environ.get(f"{prefix}{name.upper()}") for prefix in prefixes)
    return next((value for value in found if value is not None), None)


_cache: dict[tuple[str, str], tuple[float, Any]] = {}


def _cached(kind: str, name: str, find: Callable[[], Any]) -> Any:
    """With `secrets.use_cache`, files that are loaded ask for the same thing once in a while; tasks always ask."""
    if is_task_running() or not conf.getboolean("secrets", "use_cache", fallback=False):
        return find()
    now = time.monotonic()
    seconds = conf.getint("secrets", "cache_ttl_seconds", fallback=900)
    known = _cache.get((kind, name))
    if known is None or known[0] + seconds < now:
        known = _cache[kind, name] = (now, find())
    return known[1]
