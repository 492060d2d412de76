"""Parameters out of files: `-P FILE` in YAML, and `params.*` of a properties file or of `-X`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from headrace.actions.params import put_nested
from headrace.authoring.dig.yaml_dialect import parse, plain
from headrace.errors import LoadError, UsageError

_PREFIX = "params."


def read_params_file(path: str) -> dict[str, Any]:
    """The parameters of a YAML (or JSON) file with one map in it."""
    document = plain(parse(_read(path), path)) or {}
    if not isinstance(document, dict):
        raise UsageError(f"expected `{path}` to hold a map of parameters, got: {type(document).__name__}")
    return document


def read_properties(path: str) -> dict[str, str]:
    """A Java properties file, as far as such files are used for settings: `key = value` or `key: value` lines."""
    found = {}
    for number, line in enumerate(_read(path).splitlines(), 1):
        text = line.strip()
        if not text or text.startswith(("#", "!")):
            continue
        cut = min((at for at in (text.find("="), text.find(":")) if at > 0), default=-1)
        if cut < 0:
            raise LoadError(f"expected `key = value`, got: `{text}`", file=path, line=number)
        found[text[:cut].strip()] = text[cut + 1 :].strip()
    return found


def params_of_properties(properties: Mapping[str, str]) -> dict[str, Any]:
    """`params.a.b = 1` is the parameter `a` with `b` in it."""
    params: dict[str, Any] = {}
    for key, value in properties.items():
        if key.startswith(_PREFIX):
            put_nested(params, key.removeprefix(_PREFIX), value)
    return params


def properties_of_pairs(pairs: Iterable[str]) -> dict[str, str]:
    """`-X key=value`, as often as it is given."""
    found = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key.strip():
            raise UsageError(f"expected `-X KEY=VALUE`, got: `{pair}`")
        found[key.strip()] = value
    return found


def _read(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise LoadError(f"could not read `{path}`: {getattr(error, 'strerror', None) or error}") from None
