"""Conditions over events of assets: which of them must have come before a run starts.

A condition is {"asset": NAME}, {"alias": NAME}, {"all": [condition, …]} or {"any": [condition, …]}.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from headrace.errors import DefinitionError

_LEAVES = ("asset", "alias")
_BRANCHES = ("all", "any")


def event_key(kind: str, name: str) -> str:
    """What an event is known by: the asset itself, or an alias through which it came."""
    return f"{kind}:{name}"


def check_condition(condition: Any) -> None:
    """Raise a DefinitionError unless it is a condition."""
    if isinstance(condition, dict) and len(condition) == 1:
        ((kind, value),) = condition.items()
        if kind in _LEAVES and isinstance(value, str) and value:
            return
        if kind in _BRANCHES and isinstance(value, list) and value:
            for part in value:
                check_condition(part)
            return
    raise DefinitionError(f"expected the schedule to name assets, got: `{condition}`")


def condition_keys(condition: dict[str, Any]) -> Iterator[str]:
    """The keys of all events that a condition speaks of."""
    ((kind, value),) = condition.items()
    if kind in _LEAVES:
        yield event_key(kind, value)
    else:
        for part in value:
            yield from condition_keys(part)


def is_met(condition: dict[str, Any], present: Collection[str]) -> bool:
    """Whether a condition holds if events with these keys have come."""
    ((kind, value),) = condition.items()
    if kind in _LEAVES:
        return event_key(kind, value) in present
    holds = (is_met(part, present) for part in value)
    return all(holds) if kind == "all" else any(holds)


def missing_keys(condition: dict[str, Any], present: Collection[str]) -> list[str]:
    """The keys of events that have not come, in the order of the condition."""
    return [key for key in dict.fromkeys(condition_keys(condition)) if key not in present]
