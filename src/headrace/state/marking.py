"""Somebody says how tasks or a run ended, whatever the engine thinks."""

from __future__ import annotations

from collections.abc import Sequence

from headrace.state.agenda import Agenda, told
from headrace.state.clearing import drop_grown, reopen_ancestors, with_everything_below
from headrace.state.counting import count_children
from headrace.state.task import FINISHED, HELD, Actor, Attempt, Event, State, Task

MARKED = "somebody marked it so"


def mark(agenda: Agenda, tasks: Sequence[Task], state: State) -> None:
    """Give tasks this state now, with everything below a group or a mapped task; what encloses them is decided anew.

    A process that works on one of them is undead from now on: its agent finds that it holds it no more, and ends it.
    """
    agenda.credit_finished()
    chosen = [task for task in with_everything_below(agenda, tasks) if task.parent_id is not None]
    for task in sorted(chosen, key=lambda one: one.id):
        if not task.is_superseded:
            drop_grown(agenda, task)
            _set(agenda, task, state)
    marked = [task for task in chosen if not task.is_superseded]
    inside = {task.id for task in marked}
    count_children(agenda.graph, [task for task in marked if task.kind != "task"])
    outermost = [task for task in marked if task.parent_id not in inside]
    reopened = reopen_ancestors(agenda, outermost)
    ended = {task.origin_id for task in [*(one for one in marked if not one.is_expanded), *reopened]}
    # A group that had never opened is decided again, too.
    next_ones = [link.far for link in agenda.graph.downstream(ended)]
    agenda.count_upstream([*reopened, *next_ones])
    agenda.touch_beyond(marked, next_ones)
    for parent in agenda.graph.tasks({task.parent_id or 0 for task in outermost}):
        agenda.closable[parent.id] = parent


def _set(agenda: Agenda, task: Task, state: State) -> None:
    if task.state is state:
        return
    if task.state not in FINISHED or task.ended_at is None:
        task.ended_at = agenda.graph.now
    task.started_at = task.started_at or agenda.graph.now
    task.agent_id, task.due_at, task.is_failing = None, None, False
    task.error = told(MARKED) if state is State.FAILED else None
    agenda.move(task, state, Actor.USER, MARKED)


def mark_run(agenda: Agenda, attempt: Attempt, state: State) -> None:
    """What works or waits in its middle gets the run's state, what has not begun is skipped; teardowns go on."""
    attempt.reason, attempt.is_changed = f"marked_{state}", True
    (root,) = agenda.graph.tasks([attempt.root_id or 0])
    if root.state in FINISHED:
        _change_end(agenda, attempt, root, state)
        return
    for task in agenda.graph.unfinished(attempt.id):
        is_container = task.state is State.PLANNED or task.parent_id is None
        if task.state not in FINISHED and not is_container and not agenda.graph.node(task).cleans_up:
            is_under_way = task.state in (*HELD, State.DEFERRED, State.UP_FOR_RESCHEDULE)
            agenda.finish(task, state if is_under_way else State.SKIPPED, Actor.USER, MARKED)
    agenda.closable[root.id] = root


def _change_end(agenda: Agenda, attempt: Attempt, root: Task, state: State) -> None:
    if root.state is not state:
        agenda.move(root, state, Actor.USER, MARKED)
    before, attempt.state = attempt.state, str(state)
    if before != attempt.state:
        agenda.graph.record(Event(attempt.id, None, before, attempt.state, Actor.USER, 0, agenda.graph.now, MARKED))
