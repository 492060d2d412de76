"""Parameters of runs: as people type them (`KEY=VALUE`), and whether they are what the workflow asks for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from headrace.authoring import takes_texts
from headrace.definition import Workflow, schema_problem
from headrace.errors import UsageError


class Typed(str):
    """What somebody typed for a parameter. The workflow's language decides what it stands for: see `settled`."""


def typed_params(pairs: Iterable[str]) -> dict[str, Any]:
    """Parameters out of `KEY=VALUE`, as they were typed."""
    params = {}
    for pair in pairs:
        key, equals, text = pair.partition("=")
        if not equals or not key.strip():
            raise UsageError(f"expected a parameter as `KEY=VALUE`, got: `{pair}`")
        params[key.strip()] = Typed(text)
    return params


def parse_params(pairs: Iterable[str]) -> dict[str, Any]:
    """`n=5` is a number, `names=["a"]` a list, `name=a` and `name="5"` are strings: JSON where it is JSON."""
    return _as_json(typed_params(pairs))


def settled(language: str, params: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters in which those that were typed are what workflows of a language take them for."""
    return _as_texts(params) if takes_texts(language) else _as_json(params)


def put_nested(params: dict[str, Any], key: str, value: Any) -> None:
    """Set a parameter whose name may have dots: `a.b` is what the map `a` has as `b`."""
    *outer, last = key.split(".")
    for name in outer:
        if not isinstance(params.get(name), dict):
            params[name] = {}
        params = params[name]
    params[last] = value


def check_params(workflow: Workflow, params: Mapping[str, Any]) -> None:
    """UsageError unless the parameters of a new run, over the defaults, are what the workflow's schemas ask for."""
    merged = {**workflow.params, **params}
    for name, schema in workflow.param_schemas.items():
        problem = schema_problem(merged[name], schema) if name in merged else "it has no value and no default"
        if problem is not None:
            raise UsageError(
                f"parameter `{name}` of workflow `{workflow.name}` is not valid: {problem}",
                hint=f"give it with `-p {name}=VALUE`" if name not in merged else None,
            )


def _as_json(params: Mapping[str, Any]) -> dict[str, Any]:
    return {key: _value(value) if isinstance(value, Typed) else value for key, value in params.items()}


def _as_texts(params: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in params.items():
        if isinstance(value, Typed):
            for name, text in _pairs(key, value):
                put_nested(found, name, text)
        else:
            found[key] = value
    return found


def _pairs(key: str, text: str) -> list[tuple[str, str]]:
    """`a=1,b=2` is two parameters, `a=1,2` is one."""
    pairs: list[tuple[str, str]] = []
    for piece in text.split(","):
        name, equals, value = piece.partition("=")
        if pairs and not (equals and name.strip()):
            pairs[-1] = (pairs[-1][0], f"{pairs[-1][1]},{piece}")
        else:
            pairs.append((name.strip(), value) if pairs else (key, piece))
    return pairs


def _value(text: str) -> Any:
    try:
        return msgspec.json.decode(str(text))
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return str(text)
