"""Results that are objects of the user's classes: dataclasses, attrs, pydantic models, what can serialize itself.

They are stored as the class's name and its data. A class is imported again only if the installation allows it
(`core.allowed_deserialization_classes`), because importing by a stored name runs code.
"""

from __future__ import annotations

import dataclasses
import fnmatch
import re
import sys
from typing import Any

from headrace.authoring.dag.configuration import conf, import_string
from headrace.authoring.dag.value_plugins import full_name

_VERSION = 1


def dump_object(value: Any) -> dict[str, Any] | None:
    """Name, version and data of an object; None if it is of no class of this kind. The data is not JSON yet."""
    data = _data_of(value)
    if data is None:
        return None
    return {"name": full_name(type(value)), "version": getattr(type(value), "__version__", _VERSION), "data": data[0]}


def load_object(stored: dict[str, Any]) -> Any:
    """The object again. ImportError if its class may not be imported."""
    name, data = stored["name"], stored["data"]
    if not is_allowed(name):
        raise ImportError(
            f"a result is of the class `{name}`, which may not be imported;"
            f" `AIRFLOW__CORE__ALLOWED_DESERIALIZATION_CLASSES` can allow it"
        )
    cls = import_string(name)
    if hasattr(cls, "deserialize"):
        return cls.deserialize(data, stored["version"])
    if hasattr(cls, "model_validate"):
        return cls.model_validate(data)
    return cls(**data)


def is_allowed(name: str) -> bool:
    """By the patterns of the configuration, as Airflow reads them."""
    globs = conf.get("core", "allowed_deserialization_classes", fallback="").split()
    expressions = conf.get("core", "allowed_deserialization_classes_regexp", fallback="").split()
    return any(fnmatch.fnmatchcase(name, glob) for glob in globs) or any(
        re.match(expression, name) for expression in expressions
    )


def _data_of(value: Any) -> tuple[Any] | None:
    cls = type(value)
    if hasattr(cls, "serialize") and callable(value.serialize):
        return (value.serialize(),)
    pydantic = sys.modules.get("pydantic")
    if pydantic is not None and isinstance(value, pydantic.BaseModel):
        return (value.model_dump(),)
    if dataclasses.is_dataclass(cls):
        return ({one.name: getattr(value, one.name) for one in dataclasses.fields(value) if one.init},)
    if hasattr(cls, "__attrs_attrs__"):
        return ({one.alias: getattr(value, one.name) for one in cls.__attrs_attrs__ if one.init},)
    return None
