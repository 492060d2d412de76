"""Which nodes take part in a run that is about a certain time: some are for other times only."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import msgspec

from headrace.definition import Node
from headrace.state.rules import NEVER


def for_time(nodes: Sequence[Node], at: datetime | None, *, ignores_beginnings: bool = False) -> tuple[Node, ...]:
    """The nodes of a run about this time. One that is not for it is left out if nothing in the run waits for it.

    Otherwise it stays and never opens, and neither does what waits for it.
    """
    if at is None:
        return tuple(nodes)
    outside = {node.key for node in nodes if not _is_for(node, at, ignores_beginnings)}
    if not outside:
        return tuple(nodes)
    dropped = _unneeded(nodes, outside)
    return tuple(
        msgspec.structs.replace(node, trigger_rule=NEVER) if node.key in outside else node
        for node in nodes
        if node.key not in dropped
    )


def _is_for(node: Node, at: datetime, ignores_beginnings: bool) -> bool:
    if node.not_before is not None and not ignores_beginnings and at < datetime.fromisoformat(node.not_before):
        return False
    return node.not_after is None or at <= datetime.fromisoformat(node.not_after)


def _unneeded(nodes: Sequence[Node], outside: set[str]) -> set[str]:
    """Those of the nodes outside for which only others wait that are left out as well."""
    dropped: set[str] = set()
    while True:
        needed = {key for node in nodes if node.key not in dropped for key in (*node.upstream, *node.needs)}
        more = outside - needed - dropped
        if not more:
            return dropped
        dropped |= more
