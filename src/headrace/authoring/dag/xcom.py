"""`XCom`: named results as a class, which an installation can replace by its own (`core.xcom_backend`)."""

from __future__ import annotations

import inspect
from typing import Any, NamedTuple, Protocol

import msgspec

from headrace.authoring.dag.configuration import Remembered, conf, import_string
from headrace.authoring.dag.context import current_engine, get_current_context
from headrace.authoring.dag.exceptions import AirflowException
from headrace.authoring.dag.values import decode_value, encode_value, length_of, to_json
from headrace.authoring.dag.xcom_arg import RETURN_VALUE
from headrace.authoring.signatures import signature_of

_OURS = frozenset(("", "airflow.sdk.execution_time.xcom.BaseXCom", "airflow.models.xcom.BaseXCom"))
_HERE = {
    "airflow.providers.common.io.xcom.backend.XComObjectStorageBackend": (
        "headrace.authoring.dag.object_storage.XComObjectStorageBackend"
    ),
}


class Stored(NamedTuple):
    """A result as it is stored, for `deserialize_value`."""

    key: str
    value: Any
    task_id: str = ""
    dag_id: str = ""
    run_id: str = ""
    map_index: int = -1


class Named(Protocol):
    """Whose result it is."""

    task_id: str
    dag_id: str
    run_id: str
    map_index: int


class BaseXCom:
    """Results by name. A backend overrides how they are serialized; what it returns must be JSON values."""

    XCOM_RETURN_KEY = RETURN_VALUE

    @staticmethod
    def serialize_value(
        value: Any,
        *,
        key: str | None = None,
        task_id: str | None = None,
        dag_id: str | None = None,
        run_id: str | None = None,
        map_index: int | None = None,
    ) -> Any:
        """The JSON value that is stored."""
        return to_json(value, key or RETURN_VALUE)

    @staticmethod
    def deserialize_value(result: Any) -> Any:
        """The value out of what is stored."""
        return decode_value(result.value)

    @classmethod
    def orm_deserialize_value(cls, result: Any) -> Any:
        return cls.deserialize_value(result)

    @staticmethod
    def purge(xcom: Any, *args: Any) -> None:
        """Called before a result is deleted by user code."""

    @classmethod
    def set(
        cls,
        key: str,
        value: Any,
        *,
        dag_id: str | None = None,
        task_id: str | None = None,
        run_id: str | None = None,
        map_index: int | None = None,
        **_: Any,
    ) -> None:
        """Store a result of the running task at once."""
        instance = _own(dag_id, task_id, run_id, map_index)
        document = msgspec.json.decode(serialized(value, key, instance))
        _ask("set_value", name=key, value=document, length=length_of(value))

    @classmethod
    def get_one(
        cls,
        *,
        key: str | None = RETURN_VALUE,
        dag_id: str | None = None,
        task_id: str | None = None,
        run_id: str | None = None,
        map_index: int | None = None,
        include_prior_dates: bool = False,
        **_: Any,
    ) -> Any:
        """One result, or None."""
        index = map_index if map_index is not None else None
        return get_current_context()["ti"].xcom_pull(
            task_id, dag_id, key, include_prior_dates, map_indexes=index, run_id=run_id
        )

    @classmethod
    def get_value(cls, *, ti_key: Any, key: str | None = RETURN_VALUE) -> Any:
        """The result of a task instance."""
        return cls.get_one(
            key=key, dag_id=ti_key.dag_id, task_id=ti_key.task_id, run_id=ti_key.run_id, map_index=ti_key.map_index
        )

    @classmethod
    def get_all(
        cls,
        *,
        key: str = RETURN_VALUE,
        dag_id: str | None = None,
        task_id: str,
        run_id: str | None = None,
        include_prior_dates: bool = False,
    ) -> list[Any] | None:
        """The results of all instances of a task; None if there is none."""
        found = get_current_context()["ti"].xcom_pull(
            [task_id], dag_id, key, include_prior_dates, default=_NOTHING, run_id=run_id
        )
        return [value for value in found if value is not _NOTHING] or None

    @classmethod
    def delete(
        cls,
        key: str | None = None,
        dag_id: str | None = None,
        task_id: str | None = None,
        run_id: str | None = None,
        map_index: int | None = None,
        **_: Any,
    ) -> None:
        """Forget a result of the running task, or all of them."""
        instance = _own(dag_id, task_id, run_id, map_index)
        for one in _ask("get_results", tasks=[instance.task_id], name=key):
            if "value" in one and one["map_index"] == instance.map_index:
                cls.purge(_stored(one["value"], one["name"], instance))
        instance.forget(key)
        _ask("delete_values", name=key)

    @classmethod
    def clear(cls, **of: Any) -> None:
        """Forget all results of the running task."""
        cls.delete(None, **of)


_NOTHING = object()


def backend() -> Any:
    """The class that the configuration names, or ours."""
    return _backend.get()


def _chosen_backend() -> Any:
    path = conf.get("core", "xcom_backend", fallback="")
    if path in _OURS:
        return BaseXCom
    try:
        chosen = import_string(_HERE.get(path, path))
    except ImportError as error:
        raise AirflowException(f"could not import `{path}` of `core.xcom_backend`: {error}") from error
    if not (isinstance(chosen, type) and hasattr(chosen, "serialize_value") and hasattr(chosen, "deserialize_value")):
        raise AirflowException(f"expected `core.xcom_backend` to be a subclass of BaseXCom, got: `{path}`")
    return chosen


_backend = Remembered("core", "xcom_backend", _chosen_backend)


def has_custom_backend() -> bool:
    return backend() is not BaseXCom


def serialized(value: Any, key: str, instance: Named) -> bytes:
    """A result as it is stored: JSON."""
    chosen = backend()
    if chosen is BaseXCom:
        return encode_value(value, key)
    whose = {name: getattr(instance, name) for name in ("task_id", "dag_id", "run_id", "map_index")}
    document = chosen.serialize_value(value, **_accepted(chosen.serialize_value, {"key": key, **whose}))
    if isinstance(document, bytes):
        # Backends that were written for Airflow 2 give the JSON text itself.
        document = msgspec.json.decode(document)
    return encode_value(document, key) if not _is_plain(document) else msgspec.json.encode(document)


def deserialized(document: Any, key: str) -> Any:
    """A result out of what is stored."""
    chosen = backend()
    return decode_value(document) if chosen is BaseXCom else chosen.deserialize_value(Stored(key, document))


def _stored(document: Any, key: str, instance: Named) -> Stored:
    return Stored(key, document, instance.task_id, instance.dag_id, instance.run_id, instance.map_index)


def _is_plain(document: Any) -> bool:
    try:
        msgspec.json.encode(document)
    except (TypeError, ValueError, OverflowError):
        return False
    return True


def _accepted(function: Any, arguments: dict[str, Any]) -> dict[str, Any]:
    """Those of the arguments that the function takes; older backends take fewer."""
    parameters = signature_of(function).parameters
    if any(one.kind is inspect.Parameter.VAR_KEYWORD for one in parameters.values()):
        return arguments
    return {name: value for name, value in arguments.items() if name in parameters}


def _own(dag_id: str | None, task_id: str | None, run_id: str | None, map_index: int | None) -> Any:
    """The running task's instance, if it is the one that is meant."""
    instance = get_current_context()["ti"]
    meant = {"dag_id": dag_id, "task_id": task_id, "run_id": run_id, "map_index": map_index}
    for name, value in meant.items():
        if value is not None and value != getattr(instance, name):
            raise AirflowException(f"a task can change its own results only, not those of `{value}`")
    return instance


def _ask(verb: str, **args: Any) -> Any:
    engine = current_engine()
    if engine is None:
        raise AirflowException("results can be used by a running task only")
    return engine.ask(verb, **args)


def __getattr__(name: str) -> Any:
    # `from airflow.models.xcom import XCom` gives the class that the configuration names.
    if name == "XCom":
        return backend()
    raise AttributeError(f"module `{__name__}` has no `{name}`")
