"""The `sla` of a `.dig` workflow: by when a run is to have ended, and which tasks it gets if it has not."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import time
from typing import Any

from headrace.authoring.dig.compiling import compile_fragment
from headrace.authoring.dig.directives import Directives
from headrace.authoring.dig.values import shown
from headrace.authoring.dig.yaml_dialect import Section, place_of, plain
from headrace.definition import NOTIFY, Deadline, Node, Place
from headrace.errors import DefinitionError

_CLOCK = re.compile(r"(\d{1,2}):(\d\d)(?::(\d\d))?")
_OWN_KEYS = ("time", "duration", "alert", "fail")
_MESSAGE = "SLA violation"


def compile_sla(value: Any, root: str, place: Place) -> Deadline:
    """The deadline that an `sla` section stands for; `root` is the key of the workflow's root."""
    owner = f"workflow `{root.removeprefix('+')}`"
    if not isinstance(value, dict):
        raise _mistake(f"expected `sla` of {owner} to be a map, got: {shown(plain(value))}", place)
    given = [key for key in ("time", "duration") if value.get(key) is not None]
    if len(given) != 1:
        found = "both" if given else "neither"
        raise _mistake(f"expected `sla` of {owner} to have either a `time` or a `duration`, got: {found}", place)
    hours, minutes, seconds = _clock(value, given[0], owner, place)
    is_time = given[0] == "time"
    return Deadline(
        name="sla",
        counts_from="run_after",
        wall_time=time(hours, minutes, seconds).isoformat() if is_time else None,
        seconds=0.0 if is_time else hours * 3600.0 + minutes * 60 + seconds,
        not_run_types=("backfill",),
        is_met_by_failure=True,
        grows=_tasks(value, root, owner, place),
    )


def _clock(value: Mapping[str, Any], key: str, owner: str, place: Place) -> tuple[int, int, int]:
    found = _CLOCK.fullmatch(str(value[key]).strip())
    parts = [int(part or 0) for part in found.groups()] if found is not None else [99]
    if found is None or parts[1] > 59 or parts[2] > 59 or (key == "time" and parts[0] > 23):
        at = place_of(value, key, place)
        raise _mistake(f"expected `{key}` of the `sla` of {owner} to be HH:MM or HH:MM:SS, got: {value[key]}", at)
    return parts[0], parts[1], parts[2]


def _tasks(value: dict[str, Any], root: str, owner: str, place: Place) -> tuple[Node, ...]:
    flags = Directives(value, f"the `sla` of {owner}", place)
    nodes: list[Node] = []
    if flags.flag("alert", default=True):
        nodes.append(_node(f"{root}^sla^alert", NOTIFY, place))
    if flags.flag("fail"):
        nodes.append(_node(f"{root}^sla^fail", "fail", place))
    body = Section(place)
    for key, inner in value.items():
        if key not in _OWN_KEYS:
            body.put(key, inner, place_of(value, key, place))
    return (*nodes, *compile_fragment(body, f"{root}^sla", place, directive="sla"))


def _node(key: str, operator: str, place: Place) -> Node:
    return Node(key=key, operator=operator, config={"_command": _MESSAGE}, isolation="reuse", place=place)


def _mistake(message: str, place: Place) -> DefinitionError:
    return DefinitionError(message, file=place.file or None, line=place.line)
