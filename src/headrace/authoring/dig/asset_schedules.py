"""`.dig` workflows and assets: `schedule: {assets>: …}` waits for them, `asset>:` updates one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from headrace.authoring.dig.values import shown
from headrace.definition import AssetUse, Node, Schedule

ASSETS = "assets"
ASSET_OPERATOR = "asset"
_WORDS = ("all", "any")


def asset_condition(value: Any) -> dict[str, Any]:
    """A name, a list of which all are needed, or `{any: […]}` and `{all: […]}`, in one another if need be."""
    if isinstance(value, str) and value:
        return {"asset": value}
    if isinstance(value, list) and value:
        return {"all": [asset_condition(part) for part in value]}
    if isinstance(value, dict) and len(value) == 1:
        ((word, parts),) = value.items()
        if word in _WORDS and isinstance(parts, list) and parts:
            return {str(word): [asset_condition(part) for part in parts]}
    raise ValueError(f"to be a name, a list of names, `all: […]` or `any: […]`, got: {shown(value)}")


def asset_uses(schedule: Schedule | None, nodes: Sequence[Node]) -> tuple[AssetUse, ...]:
    """The assets that a workflow waits for, and those that its tasks update as far as the file tells."""
    found = {(use.name, use.role, use.task): use for use in _uses(schedule, nodes)}
    return tuple(found.values())


def _uses(schedule: Schedule | None, nodes: Sequence[Node]) -> Iterator[AssetUse]:
    if schedule is not None and schedule.type == ASSETS:
        for name in _names(schedule.spec["when"]):
            yield AssetUse(name=name, role="schedule")
    for node in nodes:
        given = node.config.get("_command")
        if node.operator == ASSET_OPERATOR and isinstance(given, str) and "${" not in given:
            yield AssetUse(name=given, role="outlet", task=node.key)


def _names(condition: dict[str, Any]) -> Iterator[str]:
    ((word, value),) = condition.items()
    if word == "asset":
        yield value
    else:
        for part in value:
            yield from _names(part)
