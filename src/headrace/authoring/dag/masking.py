"""What user code says about secrets: these values are not to be seen in the task's log."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from headrace.authoring.dag.context import current_engine

_DEPTH = 8


def mask_secret(secret: Any, name: str | None = None) -> None:
    """Show `***` in place of a value from now on.

    With a name the value is hidden only if the name, or one inside the value, is that of a secret.
    """
    engine = current_engine()
    if engine is None or not secret:
        return
    if name is not None:
        engine.ask("mask", values=[_plain(secret)], name=name)
    elif isinstance(secret, Mapping):
        # Without a name, what a dict holds is judged by its own names.
        engine.ask("mask", values=[_plain(secret)], name="")
    else:
        engine.ask("mask", values=list(_texts(secret)))


def redact(value: Any, name: str | None = None, max_depth: int | None = None) -> Any:
    """The value as it is: the log's writer replaces secrets, wherever they are printed."""
    return value


def _texts(secret: Any) -> Iterator[str]:
    if isinstance(secret, str):
        yield secret
    elif isinstance(secret, Iterable) and not isinstance(secret, bytes):
        for item in secret:
            yield from _texts(item)
    else:
        yield str(secret)


def _plain(value: Any, depth: int = _DEPTH) -> Any:
    """The value as JSON can say it."""
    if value is None or isinstance(value, str | bool | int | float):
        return value
    if depth > 0 and isinstance(value, Mapping):
        return {str(key): _plain(item, depth - 1) for key, item in value.items()}
    if depth > 0 and isinstance(value, list | tuple | set | frozenset):
        return [_plain(item, depth - 1) for item in value]
    return str(value)
