"""Calls one function in another Python, which need not have Headrace: the standard library of 3.8 is enough.

    python outside_program.py CALL_FILE

The file is JSON: the function's source and name, its arguments, and where its result or its error belongs.
"""

from __future__ import annotations

import importlib
import inspect
import json
import sys
import traceback
from collections.abc import Callable
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

_OPENERS: dict[str, Callable[[Any], Any]] = {
    "int": int,
    "float": float,
    "dict": lambda pairs: {_decoded(key): _decoded(value) for key, value in pairs},
    "tuple": lambda items: tuple(map(_decoded, items)),
    "set": lambda items: set(map(_decoded, items)),
    "frozenset": lambda items: frozenset(map(_decoded, items)),
    "datetime": datetime.fromisoformat,
    "date": date.fromisoformat,
    "timedelta": lambda parts: timedelta(*parts),
    "decimal": Decimal,
    "uuid": UUID,
}


def main(path: str) -> int:
    with open(path, encoding="utf-8") as file:
        call = json.load(file)
    try:
        function = _function(call)
        args, kwargs = _arguments(call)
        result = function(*args, **kwargs)
        if inspect.iscoroutine(result):
            result = importlib.import_module("asyncio").run(result)
        _write_result(call, result)
    except Exception as error:
        inner = error.__traceback__.tb_next if error.__traceback__ else None
        traceback.print_exception(type(error), error, inner)
        message = {"type": type(error).__name__, "message": str(error)}
        with open(call["error_file"], "w", encoding="utf-8") as file:
            json.dump(message, file)
        return 1
    return 0


def _function(call: dict[str, Any]) -> Any:
    # Names of its own, so that neither the function nor this program can hide one of the other's.
    names = {"__name__": "__main__", "virtualenv_string_args": call["string_args"]}
    exec(compile(call["source"], call["file"], "exec", dont_inherit=True), names)
    return names[call["name"]]


def _arguments(call: dict[str, Any]) -> Any:
    if call["serializer"] == "json":
        return _decoded(call["args"]), _decoded(call["kwargs"])
    with open(call["arguments_file"], "rb") as file:
        return importlib.import_module(call["serializer"]).load(file)


def _write_result(call: dict[str, Any], result: Any) -> None:
    if call["serializer"] == "json":
        with open(call["result_file"], "w", encoding="utf-8") as file:
            json.dump(_encoded(result), file)
        return
    with open(call["result_file"], "wb") as file:
        importlib.import_module(call["serializer"]).dump(result, file)


def _decoded(value: Any) -> Any:
    if isinstance(value, list):
        return [_decoded(item) for item in value]
    if isinstance(value, dict):
        if "__type" in value:
            return _OPENERS[value["__type"]](value["__value"])
        return {key: _decoded(item) for key, item in value.items()}
    return value


def _encoded(value: Any) -> Any:
    if value is None or isinstance(value, (bool, str, int)):
        return value
    if isinstance(value, float):
        is_plain = value == value and value not in (float("inf"), float("-inf"))
        return value if is_plain else {"__type": "float", "__value": str(value)}
    if isinstance(value, list):
        return [_encoded(item) for item in value]
    if isinstance(value, dict):
        if "__type" not in value and all(isinstance(key, str) for key in value):
            return {key: _encoded(item) for key, item in value.items()}
        return {"__type": "dict", "__value": [[_encoded(key), _encoded(item)] for key, item in value.items()]}
    return _special(value)


def _special(value: Any) -> Any:
    for kind in (tuple, set, frozenset):
        if isinstance(value, kind):
            return {"__type": kind.__name__, "__value": [_encoded(item) for item in value]}
    if isinstance(value, (datetime, date)):
        return {"__type": "datetime" if isinstance(value, datetime) else "date", "__value": value.isoformat()}
    if isinstance(value, timedelta):
        return {"__type": "timedelta", "__value": [value.days, value.seconds, value.microseconds]}
    if isinstance(value, (Decimal, UUID)):
        return {"__type": "decimal" if isinstance(value, Decimal) else "uuid", "__value": str(value)}
    raise TypeError(
        "expected the result to be made of JSON values, dates, decimals and the like, got: "
        f"{type(value).__module__}.{type(value).__qualname__}; with another serializer it may be anything that both "
        "sides can import"
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
