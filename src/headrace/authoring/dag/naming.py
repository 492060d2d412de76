"""Ids of DAGs, tasks and groups: which are allowed, which are taken, and the next free one."""

from __future__ import annotations

import re

from headrace.authoring.dag.exceptions import DuplicateTaskIdFound

_ID = re.compile(r"[\w.-]+")
_GROUP_ID = re.compile(r"[\w-]+")
_SUFFIXED = re.compile(r"(.+)__(\d+)")


def check_id(what: str, value: object, limit: int = 250) -> str:
    """Return the id of a DAG or task if it is allowed; otherwise raise."""
    return _check(what, value, _ID, "letters, digits, dots, dashes and underscores", limit)


def check_group_id(value: object) -> str:
    """Return the id of a task group if it is allowed; otherwise raise."""
    return _check("group id", value, _GROUP_ID, "letters, digits, dashes and underscores", 200)


def _check(what: str, value: object, pattern: re.Pattern[str], allowed: str, limit: int) -> str:
    if not isinstance(value, str):
        raise TypeError(f"expected the {what} to be a string, got: {type(value).__name__}")
    if len(value) > limit:
        raise ValueError(f"expected the {what} to have at most {limit} characters, got {len(value)}: `{value}`")
    if not pattern.fullmatch(value):
        raise ValueError(f"expected the {what} to consist of {allowed}, got: `{value}`")
    return value


class IdPool:
    """The ids that are taken in one DAG; tasks and groups share them."""

    def __init__(self) -> None:
        self._taken: set[str] = set()
        self._highest: dict[str, int] = {}

    def claim(self, what: str, value: str) -> None:
        """Take an id; DuplicateTaskIdFound if somebody else has it."""
        if value in self._taken:
            raise DuplicateTaskIdFound(f"the {what} `{value}` is already taken")
        self._taken.add(value)
        match = _SUFFIXED.fullmatch(value)
        if match:
            name, number = match.group(1), int(match.group(2))
            self._highest[name] = max(number, self._highest.get(name, 0))

    def free_variant(self, value: str) -> str:
        """The id itself if it is free; otherwise with the next number behind it (`f__1`, `f__2`, …)."""
        if value not in self._taken:
            return value
        match = _SUFFIXED.fullmatch(value)
        name = match.group(1) if match else value
        return f"{name}__{self._highest.get(name, 0) + 1}"
