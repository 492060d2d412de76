"""Rules that look at the run before: what a task waits for there, and whom the end of a task may set free."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from headrace.definition import Past, Workflow
from headrace.state.task import State

FINE = frozenset({State.SUCCESS, State.SKIPPED, State.REMOVED})
"""How a task of the run before may have ended."""


class PastRules:
    """The nodes of a workflow that look at the run before."""

    def __init__(self, workflow: Workflow) -> None:
        self.of: dict[str, Past] = {node.key: node.past for node in workflow.nodes if node.past is not None}
        self.downstream: dict[str, tuple[str, ...]] = {
            key: tuple(node.key for node in workflow.nodes if key in node.upstream)
            for key, past in self.of.items()
            if past.with_downstream
        }

    def affected_by(self, key: str) -> list[str]:
        """The tasks of the next run that may wait for the end of this one."""
        watching = [one for one, downstream in self.downstream.items() if key in downstream and one != key]
        return [key, *watching] if key in self.of else watching


class RunBefore(NamedTuple):
    """What a rule needs to know of the run before."""

    run_id: int
    logical_time: datetime
    states: Sequence[str]
    """Of the task in that run: of each of its instances, if it was mapped."""
    downstream: Sequence[str]
    """Of the tasks that waited for it directly."""
    has_earlier: bool
    """Whether any run before had the task."""


def is_met(past: Past, before: RunBefore | None) -> bool:
    """Whether the run before lets the task go."""
    if before is None or (past.since is not None and before.logical_time < datetime.fromisoformat(past.since)):
        return True
    if past.ignores_first and not before.has_earlier:
        return True
    if not before.states or any(state not in FINE for state in before.states):
        return False
    return not past.with_downstream or all(state in FINE for state in before.downstream)
