"""Parameters as people type them: `KEY=VALUE`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from headrace.errors import UsageError


def parse_params(pairs: Iterable[str]) -> dict[str, Any]:
    """`n=5` is a number, `names=["a"]` a list, `name=a` and `name="5"` are strings: JSON where it is JSON."""
    params = {}
    for pair in pairs:
        key, equals, text = pair.partition("=")
        if not equals or not key.strip():
            raise UsageError(f"expected a parameter as `KEY=VALUE`, got: `{pair}`")
        params[key.strip()] = _value(text)
    return params


def _value(text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return text
