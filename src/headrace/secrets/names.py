"""What secrets may be called and how long they may be: the rules of Digdag."""

from __future__ import annotations

import re

from headrace.errors import UsageError

_SEGMENT = r"[A-Za-z](?:[A-Za-z0-9_-]*[A-Za-z0-9])?"
_NAME = re.compile(rf"{_SEGMENT}(?:\.{_SEGMENT})*")
_LONGEST_NAME = 255
_LARGEST_VALUE = 16 * 1024


def check_secret_name(name: str) -> str:
    """The name itself, or a UsageError."""
    if len(name) > _LONGEST_NAME or _NAME.fullmatch(name) is None:
        raise UsageError(
            f"expected the name of a secret to be words of letters, digits, `_` and `-`, joined by dots, got: `{name}`",
            hint="`pg.password`, for example",
        )
    return name


def check_secret_value(name: str, value: str) -> str:
    """The value itself, or a UsageError that does not show it."""
    size = len(value.encode(errors="surrogatepass"))
    if size > _LARGEST_VALUE:
        raise UsageError(f"the secret `{name}` takes {size} bytes, the limit is {_LARGEST_VALUE}")
    return value
