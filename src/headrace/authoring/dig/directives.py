"""Reads the control directives of a task: `_retry`, `_parallel`, `_background`, `_after`, `_export`."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeVar

from headrace.authoring.dig.values import as_boolean, as_integer, as_list, as_map, as_text, is_template, shown
from headrace.authoring.dig.yaml_dialect import place_of, plain
from headrace.definition import Place, Retry
from headrace.errors import DefinitionError, did_you_mean

log = logging.getLogger(__name__)

RETRY_KEYS = ("limit", "interval", "max_interval", "interval_type")
T = TypeVar("T")


class Parallel(NamedTuple):
    is_parallel: bool = False
    limit: int = 0
    """How many children make a chunk that the next chunk waits for; 0: all run at once."""


class Directives:
    """The directives of one map of a file. Errors name the task and the line of the directive."""

    def __init__(self, body: Mapping[str, Any], owner: str, place: Place) -> None:
        self._body = body
        self._owner = owner
        self._place = place

    def flag(self, key: str, *, default: bool = False) -> bool:
        """A directive that is true or false, also if it is not there."""
        return self._read(key, as_boolean, default=default)

    def export(self) -> dict[str, Any]:
        """The parameters that the task adds for itself and everything below it."""
        if self._body.get("_export") is None:
            return {}
        value = self._body["_export"]
        if not isinstance(value, dict):
            raise self._error("_export", f"to be a map, got: {shown(value)}")
        exported: dict[str, Any] = plain(value)
        return exported

    def after(self) -> list[str]:
        """The names of the siblings that the task waits for."""
        names: list[Any] = self._read("_after", as_list, default=[])
        return [str(name) for name in names]

    def parallel(self) -> Parallel:
        """Whether the children of a group run side by side."""
        value = self._body.get("_parallel")
        if is_template(value):
            raise self._error("_parallel", f"to be known before the run, got: {shown(value)}")
        return self._checked("_parallel", lambda: parse_parallel(value))

    def retry(self) -> Retry:
        """How the task is retried. A value that is known only at run time means no retry here."""
        value = self._body.get("_retry")
        if is_template(value):
            return Retry()
        return self._checked("_retry", lambda: parse_retry(value))

    def _read(self, key: str, convert: Callable[[Any], T], default: T) -> T:
        value = self._body.get(key)
        return default if value is None else self._checked(key, lambda: convert(value))

    def _checked(self, key: str, read: Callable[[], T]) -> T:
        try:
            return read()
        except ValueError as error:
            raise self._error(key, str(error)) from None

    def _error(self, key: str, expectation: str) -> DefinitionError:
        place = place_of(self._body, key, self._place)
        message = f"expected `{key}` of {self._owner} {expectation}"
        return DefinitionError(message, file=place.file or None, line=place.line)


def parse_retry(value: Any) -> Retry:
    """A retry policy out of `3`, `"3"` or `{limit: 3, interval: 10, max_interval: 60, interval_type: exponential}`."""
    if value is None:
        return Retry()
    if isinstance(value, str) and value.lstrip().startswith("{"):
        value = as_map(value)
    if not isinstance(value, dict):
        return Retry(limit=_limit(value))
    for key in value:
        if key not in RETRY_KEYS:
            log.warning("`_retry` has no setting `%s`: %s", key, did_you_mean(key, RETRY_KEYS) or "it is ignored")
    if "limit" not in value:
        raise ValueError("to have a `limit`")
    kind = as_text(value.get("interval_type", "constant"))
    if kind not in ("constant", "exponential"):
        raise ValueError(f"to have the interval_type constant or exponential, got: {shown(kind)}")
    return Retry(
        limit=_limit(value["limit"]),
        delay_seconds=float(_count(value.get("interval", 0))),
        backoff=2.0 if kind == "exponential" else 1.0,
        max_delay_seconds=float(_count(value["max_interval"])) if "max_interval" in value else None,
    )


def parse_parallel(value: Any) -> Parallel:
    """`true`, `false` or `{limit: N}`, also as JSON text."""
    if value is None:
        return Parallel()
    if isinstance(value, dict) or (isinstance(value, str) and value.lstrip().startswith("{")):
        settings = as_map(value)
        return Parallel(is_parallel=True, limit=_count(settings.get("limit", 0)))
    return Parallel(is_parallel=as_boolean(value))


def _limit(value: Any) -> int:
    """How many retries there are; fewer than none are none."""
    return max(as_integer(value), 0)


def _count(value: Any) -> int:
    number = as_integer(value)
    if number < 0:
        raise ValueError(f"not to be negative, got: {shown(value)}")
    return number
