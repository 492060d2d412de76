"""How one pass over a run differs from an ordinary one: only some tasks, other parameters, nothing called."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from headrace.definition import NOOP, Data, Node


class AttemptPlan(Data, frozen=True, kw_only=True):
    """What somebody asked for when the attempt was made. The default is an ordinary attempt."""

    params: dict[str, Any] | None = None
    """Stand in for the run's own parameters."""
    only: tuple[str, ...] | None = None
    """Keys of the nodes that take part; all others are as if they were not written. None: all take part."""
    carried: tuple[str, ...] | None = None
    """Keys of the tasks that may be carried over from the attempt which this one resumes. None: all that succeeded."""
    is_dry: bool = False
    """No operator is called: each task succeeds as soon as it opens."""

    def params_over(self, params: dict[str, Any]) -> dict[str, Any]:
        """The attempt's parameters, if these are the run's."""
        return params if self.params is None else self.params

    def nodes(self, nodes: Sequence[Node]) -> tuple[Node, ...]:
        """The nodes that take part, as they take part."""
        chosen = tuple(nodes) if self.only is None else _chosen(nodes, frozenset(self.only))
        return tuple(_without_code(node) for node in chosen) if self.is_dry else chosen


ORDINARY = AttemptPlan()


def plan_from_json(text: str | None) -> AttemptPlan:
    """The plan of an attempt out of its row."""
    return ORDINARY if text is None else msgspec.json.decode(text, type=AttemptPlan)


def plan_to_json(plan: AttemptPlan) -> str | None:
    return None if plan == ORDINARY else msgspec.json.encode(plan).decode()


def _chosen(nodes: Sequence[Node], keys: frozenset[str]) -> tuple[Node, ...]:
    """Some nodes, without edges to the others. Where nothing comes after a node any more, its failure counts."""
    kept = [node for node in nodes if node.key in keys]
    waited_for = {key for node in kept for key in node.upstream}
    return tuple(
        msgspec.structs.replace(
            node,
            upstream=tuple(key for key in node.upstream if key in keys),
            setups=tuple(key for key in node.setups if key in keys),
            decides=node.decides or node.key not in waited_for,
        )
        for node in kept
    )


def _without_code(node: Node) -> Node:
    return node if node.kind == "group" else msgspec.structs.replace(node, operator=NOOP, kind="task", expand=None)
