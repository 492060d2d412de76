"""Replaces secrets in a stream of bytes by `***`, also where a secret is cut in two by the reading."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Set
from threading import Lock
from typing import Any, NamedTuple
from urllib.parse import quote, quote_plus

from headrace.settings import SecretsSettings

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


class MaskingRules(NamedTuple):
    """What an installation says about secrets."""

    names: tuple[str, ...] = ()
    """Parts of names, besides the usual ones, that make something a secret."""
    hides_by_name: bool = True
    """False: only what is known to be a secret is hidden, not what is called like one."""
    shortest: int = SHORTEST

    @classmethod
    def of(cls, settings: SecretsSettings) -> MaskingRules:
        names = tuple(name.lower() for name in settings.sensitive_names)
        return cls(names, settings.hide_sensitive, settings.shortest_masked)


USUAL_RULES = MaskingRules()


def is_sensitive(name: str, rules: MaskingRules = USUAL_RULES) -> bool:
    """Whether something with this name is probably a secret."""
    lowered = name.strip().lower()
    return any(part in lowered for part in (*SENSITIVE_PARTS, *rules.names))


def sensitive_values(
    value: Any, name: str = "", depth: int = _DEPTH, rules: MaskingRules = USUAL_RULES
) -> Iterator[str]:
    """The strings in a JSON value that are secrets by their own name or by a name above them.

    >>> list(sensitive_values({"user": "app", "password": "hunter22"}))
    ['hunter22']
    """
    if isinstance(value, str):
        if name and is_sensitive(name, rules):
            yield value
        yield from _inside_json(value, name, depth, rules)
    elif depth <= 0:
        return
    elif isinstance(value, dict):
        for key, item in value.items():
            inner = name if name and is_sensitive(name, rules) else str(key)
            yield from sensitive_values(item, inner, depth - 1, rules)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from sensitive_values(item, name, depth - 1, rules)


def hidden(value: Any, name: str = "", rules: MaskingRules = USUAL_RULES) -> Any:
    """A JSON value as it may be shown: `***` in place of every string that is a secret by its name.

    >>> hidden({"user": "app", "password": "hunter22"})
    {'user': 'app', 'password': '***'}
    """
    if isinstance(value, dict):
        inner = {key: name if name and is_sensitive(name, rules) else str(key) for key in value}
        return {key: hidden(item, inner[key], rules) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [hidden(item, name, rules) for item in value]
    if not isinstance(value, str):
        return value
    if name and value and is_sensitive(name, rules):
        return REPLACEMENT.decode()
    if next(_inside_json(value, name, _DEPTH, rules), None) is not None:
        return json.dumps(hidden(json.loads(value), name, rules))
    return value


def _inside_json(text: str, name: str, depth: int, rules: MaskingRules) -> Iterator[str]:
    """Secrets in a string that is itself a JSON object or list, as a connection's `extra` often is."""
    if depth > 0 and text.lstrip()[:1] in ("{", "["):
        try:
            value = json.loads(text)
        except ValueError:
            return
        yield from sensitive_values(value, name, depth - 1, rules)


class Masker:
    """The secrets of one try. `add` may be called from another thread than `mask`."""

    def __init__(self, values: Iterable[str] = (), rules: MaskingRules = USUAL_RULES) -> None:
        self._rules = rules
        self._lock = Lock()
        self._forms: frozenset[bytes] = frozenset()
        self._patterns: tuple[bytes, ...] = ()
        self._expression: re.Pattern[bytes] | None = None
        self._held = b""
        self.add(values)

    def add(self, values: Iterable[str]) -> None:
        """Replace these strings from now on, as they are and as URLs and JSON write them."""
        self._add_forms({form for value in values if len(value) >= self._rules.shortest for form in _forms(value)})

    def _add_forms(self, forms: Set[bytes]) -> None:
        with self._lock:
            if forms <= self._forms:
                return
            self._forms |= forms
            self._patterns = tuple(sorted(self._forms, key=len, reverse=True))
            self._expression = re.compile(b"|".join(map(re.escape, self._patterns)))

    def include(self, other: Masker) -> None:
        """Replace everything that the other one replaces."""
        self._add_forms(other._forms)

    def add_sensitive(self, value: Any, name: str = "") -> None:
        """Replace those strings of a JSON value that are secrets by its name or by names inside it."""
        if self._rules.hides_by_name:
            self.add(sensitive_values(value, name, rules=self._rules))

    def hidden(self, value: Any, name: str = "") -> Any:
        """A JSON value without what is a secret by its name or by names inside it."""
        return hidden(value, name, self._rules) if self._rules.hides_by_name else value

    def mask_text(self, text: str) -> str:
        """A text by itself, such as an error's message, without secrets."""
        return self.replace(text.encode(errors="surrogatepass")).decode(errors="surrogatepass")

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
