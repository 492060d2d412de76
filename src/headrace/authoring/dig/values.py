"""Lenient readings of JSON values, as `.dig` files expect them: `"3"` is a number, `"true"` is a boolean.

Each function raises ValueError with the end of a sentence: what was expected, what was found.
"""

from __future__ import annotations

import json
import re
from typing import Any

_BOOLEANS = {"true": True, "True": True, "false": False, "False": False, "": False}
_DURATION = re.compile(r"\s*(?:(\d+)\s*d)?\s*(?:(\d+)\s*h)?\s*(?:(\d+)\s*m)?\s*(?:(\d+)\s*s)?\s*", re.IGNORECASE)


def as_boolean(value: Any) -> bool:
    """True or false out of a boolean, a number (0 is false) or one of the texts true, True, false, False and empty."""
    if isinstance(value, str) and value in _BOOLEANS:
        return _BOOLEANS[value]
    if isinstance(value, bool | int | float):
        return bool(value)
    raise ValueError(f"to be true or false, got: {shown(value)}")


def as_integer(value: Any) -> int:
    """A whole number out of a number or a numeric text."""
    if isinstance(value, str) and re.fullmatch(r"\s*[-+]?\d+\s*", value):
        return int(value)
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    raise ValueError(f"to be a whole number, got: {shown(value)}")


def as_text(value: Any) -> str:
    """A text out of a text, a number or a boolean."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool | int | float):
        return json.dumps(value)
    raise ValueError(f"to be a text, got: {shown(value)}")


def as_map(value: Any) -> dict[str, Any]:
    """A map, or a text that holds one as JSON."""
    found = _unpacked(value)
    if isinstance(found, dict):
        return found
    raise ValueError(f"to be a map, got: {shown(value)}")


def as_list(value: Any) -> list[Any]:
    """A list, or a text that holds one as JSON."""
    found = _unpacked(value)
    if isinstance(found, list):
        return found
    raise ValueError(f"to be a list, got: {shown(value)}")


def as_seconds(value: Any) -> int:
    """The seconds of a duration like `1d 2h 3m 4s`, any part of which may be left out."""
    match = _DURATION.fullmatch(value) if isinstance(value, str) else None
    if match is None or not any(match.groups()):
        raise ValueError(f"to be a duration like `1h 30m`, got: {shown(value)}")
    days, hours, minutes, seconds = (int(part or 0) for part in match.groups())
    return ((days * 24 + hours) * 60 + minutes) * 60 + seconds


def shown(value: Any) -> str:
    """A value in a message: short, and in the notation of the file."""
    text = json.dumps(value, ensure_ascii=False) if not isinstance(value, str) else value
    return f"`{text if len(text) <= 80 else text[:77] + '...'}`"


def is_template(value: Any) -> bool:
    """Whether a value has a `${…}` somewhere and so is known only at run time."""
    if isinstance(value, str):
        return "${" in value
    if isinstance(value, dict):
        return any(is_template(item) for item in value.values())
    return isinstance(value, list) and any(is_template(item) for item in value)


def _unpacked(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except ValueError:
        return value
