"""Results as JSON and back. What JSON lacks travels in an envelope: {"__type": "date", "__value": "2026-02-03"}."""

from __future__ import annotations

import math
import uuid
from collections.abc import Callable, Mapping
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from types import NoneType
from typing import Any

import msgspec

from headrace.authoring.dag.exceptions import SerializationError
from headrace.authoring.dag.value_classes import dump_object, load_object
from headrace.authoring.dag.value_plugins import serializer_named, serializer_of

_TYPE = "__type"
_VALUE = "__value"
_LARGEST_PLAIN_INT = 2**63 - 1


_WITHOUT_ELEMENTS = (NoneType, str, int, float)
_WITH_ELEMENTS = (list, dict, tuple, set, frozenset)


def encode_value(value: Any, name: str) -> bytes:
    """A result as JSON text."""
    document = to_json(value, name)
    try:
        return msgspec.json.encode(document)
    except UnicodeEncodeError as error:
        raise SerializationError(
            f"expected the result `{name}` to hold text that UTF-8 can spell, got: {error.object!r:.100}"
            "\nhint: names of files are no text if they are not UTF-8; `os.fsencode` gives their bytes"
        ) from None


def decode_value(value: Any) -> Any:
    """A result out of decoded JSON."""
    if isinstance(value, list):
        return [decode_value(item) for item in value]
    if isinstance(value, dict):
        if _TYPE in value:
            return _open(value[_TYPE], value[_VALUE])
        return {key: decode_value(item) for key, item in value.items()}
    return value


def length_of(value: Any) -> int | None:
    """How many elements a result has, if it has elements."""
    # A type that `Mapping` has not met is compared with all kinds of mappings, which is forty pages for a new process.
    if isinstance(value, _WITHOUT_ELEMENTS):
        return None
    return len(value) if isinstance(value, _WITH_ELEMENTS) or isinstance(value, Mapping) else None


def to_json(value: Any, name: str) -> Any:
    """A result as JSON values; SerializationError names the type that has no JSON form."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, int):
        return int(value) if abs(value) <= _LARGEST_PLAIN_INT else _envelope("int", str(int(value)))
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else _envelope("float", str(float(value)))
    if isinstance(value, list):
        return [to_json(item, name) for item in value]
    if isinstance(value, dict) or isinstance(value, Mapping):
        return _mapping(value, name)
    return _special(value, name)


def _mapping(value: Mapping[Any, Any], name: str) -> Any:
    if _TYPE not in value and all(isinstance(key, str) for key in value):
        return {str.__str__(key): to_json(item, name) for key, item in value.items()}
    return _envelope("dict", [[to_json(key, name), to_json(item, name)] for key, item in value.items()])


def _special(value: Any, name: str) -> Any:
    if isinstance(value, tuple | set | frozenset):
        kind = "tuple" if isinstance(value, tuple) else "set" if isinstance(value, set) else "frozenset"
        return _envelope(kind, [to_json(item, name) for item in value])
    if isinstance(value, datetime):
        return _envelope("datetime", value.isoformat())
    if isinstance(value, date):
        return _envelope("date", value.isoformat())
    if isinstance(value, timedelta):
        return _envelope("timedelta", [value.days, value.seconds, value.microseconds])
    if isinstance(value, Decimal):
        return _envelope("decimal", str(value))
    if isinstance(value, uuid.UUID):
        return _envelope("uuid", str(value))
    if isinstance(value, timezone):
        offset = value.utcoffset(None)
        return _envelope("timezone", offset.total_seconds())
    return _object(value, name)


def _object(value: Any, name: str) -> Any:
    found = serializer_of(value)
    if found is not None:
        return _envelope("plugin", [found[0], to_json(found[1].dump(value), name)])
    stored = dump_object(value)
    if stored is not None:
        return _envelope("object", {**stored, "data": to_json(stored["data"], name)})
    cls = type(value)
    raise SerializationError(
        f"expected the result `{name}` to be made of JSON values, got: {cls.__module__}.{cls.__qualname__}"
    )


def _envelope(kind: str, value: Any) -> dict[str, Any]:
    return {_TYPE: kind, _VALUE: value}


_OPENERS: dict[str, Callable[[Any], Any]] = {
    "int": int,
    "float": float,
    "dict": lambda pairs: {decode_value(key): decode_value(item) for key, item in pairs},
    "tuple": lambda items: tuple(map(decode_value, items)),
    "set": lambda items: set(map(decode_value, items)),
    "frozenset": lambda items: frozenset(map(decode_value, items)),
    "datetime": datetime.fromisoformat,
    "date": date.fromisoformat,
    "timedelta": lambda parts: timedelta(*parts),
    "decimal": Decimal,
    "uuid": uuid.UUID,
    "timezone": lambda seconds: timezone(timedelta(seconds=seconds)),
    "plugin": lambda parts: _open_plugin(parts),
    "object": lambda stored: _open_object(stored),
}


def _open_plugin(parts: list[Any]) -> Any:
    name, data = parts
    found = serializer_named(name)
    if found is None:
        raise SerializationError(f"a stored result is of the class `{name}`, and no plug-in here knows it")
    return found.load(decode_value(data))


def _open_object(stored: dict[str, Any]) -> Any:
    return load_object({**stored, "data": decode_value(stored["data"])})


def _open(kind: str, value: Any) -> Any:
    opener = _OPENERS.get(kind)
    if opener is None:
        raise SerializationError(f"a stored result has the unknown type `{kind}`")
    return opener(value)
