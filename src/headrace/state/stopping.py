"""Ending the rest of a run because of one of its tasks."""

from __future__ import annotations

from headrace.state.agenda import Agenda
from headrace.state.task import FINISHED, HELD, Actor, State, Task


def stop_the_rest(agenda: Agenda, failed: Task) -> None:
    """A task failed for good in a workflow that fails fast: what runs fails with it, everything else is skipped."""
    reason = f"task `{failed.name}` failed and the workflow fails fast"
    for task in agenda.graph.unfinished(failed.attempt_id):
        # What is open around tasks closes by itself, and one that was just ended may have taken others along.
        is_container = task.state is State.PLANNED or task.parent_id is None
        if is_container or task.state in FINISHED or agenda.graph.node(task).cleans_up:
            continue
        agenda.finish(task, State.FAILED if task.state in HELD else State.SKIPPED, Actor.ADVANCE, reason)


def end_below(agenda: Agenda, root: Task, becomes: State, reason: str, *, spares_alerts: bool) -> bool:
    """End whatever is not finished in a run but its root; returns whether alerts were spared and go on."""
    is_alerting = False
    for task in agenda.graph.unfinished(root.attempt_id):
        if task is root or task.state in FINISHED:
            continue
        if spares_alerts and task.parent_id == root.id and agenda.graph.node(task).cleans_up:
            is_alerting = True
        else:
            agenda.finish(task, becomes, Actor.TIMER, reason)
    return is_alerting
