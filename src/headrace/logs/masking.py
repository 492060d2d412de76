"""Replaces secrets in a stream of bytes by `***`, also where a secret is cut in two by the reading."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from threading import Lock
from typing import Any
from urllib.parse import quote, quote_plus

REPLACEMENT = b"***"
SHORTEST = 5
"""Shorter values would make a log unreadable and are no secrets anyway."""

SENSITIVE_PARTS = (
    "access_key",
    "access_token",
    "api_key",
    "apikey",
    "auth_header",
    "authorization",
    "bearer",
    "connection_string",
    "dsn",
    "keyfile_dict",
    "passphrase",
    "passwd",
    "password",
    "private_key",
    "proxy",
    "proxies",
    "secret",
    "service_account",
    "service_key",
    "token",
    "webhook_url",
)
_DEPTH = 5


def is_sensitive(name: str) -> bool:
    """Whether something with this name is probably a secret."""
    lowered = name.lower()
    return any(part in lowered for part in SENSITIVE_PARTS)


def sensitive_values(value: Any, name: str = "", depth: int = _DEPTH) -> Iterator[str]:
    """The strings in a JSON value that are secrets by their own name or by a name above them.

    >>> list(sensitive_values({"user": "app", "password": "hunter22"}))
    ['hunter22']
    """
    if isinstance(value, str):
        if name and is_sensitive(name):
            yield value
        yield from _inside_json(value, name, depth)
    elif depth <= 0:
        return
    elif isinstance(value, dict):
        for key, item in value.items():
            inner = name if name and is_sensitive(name) else str(key)
            yield from sensitive_values(item, inner, depth - 1)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from sensitive_values(item, name, depth - 1)


def _inside_json(text: str, name: str, depth: int) -> Iterator[str]:
    """Secrets in a string that is itself a JSON object or list, as a connection's `extra` often is."""
    if depth > 0 and text.lstrip()[:1] in ("{", "["):
        try:
            value = json.loads(text)
        except ValueError:
            return
        yield from sensitive_values(value, name, depth - 1)


class Masker:
    """The secrets of one try. `add` may be called from another thread than `mask`."""

    def __init__(self, values: Iterable[str] = ()) -> None:
        self._lock = Lock()
        self._forms: frozenset[bytes] = frozenset()
        self._patterns: tuple[bytes, ...] = ()
        self._expression: re.Pattern[bytes] | None = None
        self._held = b""
        self.add(values)

    def add(self, values: Iterable[str]) -> None:
        """Replace these strings from now on, as they are and as URLs and JSON write them."""
        forms = {form for value in values if len(value) >= SHORTEST for form in _forms(value)}
        with self._lock:
            if forms <= self._forms:
                return
            self._forms |= forms
            self._patterns = tuple(sorted(self._forms, key=len, reverse=True))
            self._expression = re.compile(b"|".join(map(re.escape, self._patterns)))

    def mask(self, data: bytes) -> bytes:
        """What can be shown now. An end that may be the beginning of a secret is held back for the next call."""
        with self._lock:
            expression = self._expression
            if expression is None:
                return data
            data = self._held + data
            cut = self._cut(data)
            shown: list[bytes] = []
            position = 0
            for match in expression.finditer(data):
                if match.start() >= cut:
                    break
                shown += (data[position : match.start()], REPLACEMENT)
                position = match.end()
            cut = max(cut, position)
            shown.append(data[position:cut])
            self._held = data[cut:]
            return b"".join(shown)

    def replace(self, data: bytes) -> bytes:
        """Complete data without the secrets in it, apart from the stream."""
        with self._lock:
            return data if self._expression is None else self._expression.sub(REPLACEMENT, data)

    def flush(self) -> bytes:
        """What was held back, when nothing follows any more."""
        with self._lock:
            held, self._held = self._held, b""
            return held if self._expression is None else self._expression.sub(REPLACEMENT, held)

    def _cut(self, data: bytes) -> int:
        """Where the longest end begins that is the proper beginning of a secret."""
        cut = len(data)
        for pattern in self._patterns:
            start = data.find(pattern[:1], max(0, len(data) - len(pattern) + 1), cut)
            while start != -1:
                if pattern.startswith(data[start:]):
                    cut = start
                    break
                start = data.find(pattern[:1], start + 1, cut)
        return cut


def _forms(value: str) -> set[bytes]:
    texts = (
        value,
        quote(value, safe=""),
        quote(value),
        quote_plus(value),
        json.dumps(value)[1:-1],
        json.dumps(value, ensure_ascii=False)[1:-1],
        repr(value)[1:-1],
    )
    return {text.encode(errors="surrogatepass") for text in texts}
