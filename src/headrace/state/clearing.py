"""Giving tasks of the same attempt a new series of tries."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from headrace.state.agenda import Agenda
from headrace.state.counting import count_children
from headrace.state.task import FINISHED, Actor, Attempt, Event, State, Task


def clear(agenda: Agenda, tasks: Sequence[Task]) -> None:
    """Clear tasks, with everything below a group or a mapped task, and reopen whatever encloses them."""
    agenda.credit_finished()
    cleared = []
    # Parents have smaller ids than their children, so what a cleared task grew is gone before its turn comes.
    for task in sorted(with_everything_below(agenda, tasks), key=lambda one: one.id):
        if not task.is_superseded:
            _forget_mark(agenda.graph.attempt(task.attempt_id))
            _clear(agenda, task)
            cleared.append(task)
    affected = {task.id: task for task in [*cleared, *reopen_ancestors(agenda, cleared)]}
    for link in agenda.graph.downstream({task.origin_id for task in affected.values()}):
        affected[link.far.id] = link.far
    agenda.count_upstream(affected.values())


def restart(agenda: Agenda, task: Task, actor: Actor) -> None:
    """It was cleared while it ran and its process is gone: it begins anew."""
    _reset(task)
    agenda.move(task, State.NONE, actor)
    agenda.count_upstream([task])


def with_everything_below(agenda: Agenda, tasks: Iterable[Task]) -> list[Task]:
    """Tasks, with what is in those that are groups or mapped; removed instances are left out."""
    selected: dict[int, Task] = {}
    level = list(tasks)
    while level:
        level = [t for t in level if t.state is not State.REMOVED and t.id not in selected]
        selected.update((task.id, task) for task in level)
        containers = {task.id for task in level if task.kind != "task"}
        level = agenda.graph.children(containers) if containers else []
    return list(selected.values())


def _clear(agenda: Agenda, task: Task) -> None:
    retries = 0 if task.kind == "mapped" else agenda.graph.node(task).retry.limit
    task.max_tries = task.try_number + retries
    drop_grown(agenda, task)
    if task.state in (State.RUNNING, State.QUEUED):
        agenda.move(task, State.RESTARTING, Actor.USER)
    elif task.parent_id is not None and task.state not in (State.NONE, State.RESTARTING):
        _reset(task)
        agenda.move(task, State.NONE, Actor.USER)
    agenda.graph.touch(task)


def _forget_mark(attempt: Attempt) -> None:
    """How the run ends is decided by its tasks again."""
    if attempt.marked_as is not None:
        attempt.reason, attempt.is_changed = None, True


def drop_grown(agenda: Agenda, task: Task) -> None:
    """Forget what its end has added: a new end will add it again."""
    if task.kind == "task":
        agenda.drop_children(task, Actor.USER)
    elif task.is_failing:
        agenda.supersede(_handlers(agenda, task), Actor.USER)
        task.is_failing = False


def _handlers(agenda: Agenda, task: Task) -> list[Task]:
    """The newest of what its end has added: that was for its failure, if it is failing."""
    keys = {node.key for node in agenda.graph.node(task).on_failure}
    grown = [child for child in agenda.graph.children([task.id]) if child.grown_by == task.id and child.key in keys]
    newest = max((child.generation for child in grown), default=0)
    return [child for child in grown if child.generation == newest]


def _reset(task: Task) -> None:
    task.agent_id = task.due_at = task.started_at = task.first_started_at = task.ended_at = None
    task.error = task.decision = task.poll_state = task.resume = None
    task.is_failing = False


def reopen_ancestors(agenda: Agenda, cleared: Sequence[Task]) -> list[Task]:
    """Open again whatever ended around the cleared tasks; returns what was reopened."""
    reopened: list[Task] = []
    level: Sequence[Task] = cleared
    while level:
        parents = agenda.graph.tasks({task.parent_id for task in level if task.parent_id is not None})
        for parent in parents:
            if parent.is_superseded:
                continue  # a handler whose task is being tried again is history by now
            _forget_failure(agenda, parent, {task.id for task in level})
            # A group that waits for its next try goes on with this one, or what is below would run in a closed group.
            if parent.state in FINISHED or parent.state is State.UP_FOR_RETRY:
                _reopen(agenda, parent)
                reopened.append(parent)
        count_children(agenda.graph, parents)
        level = parents
    return reopened


def _forget_failure(agenda: Agenda, parent: Task, changed_ids: set[int]) -> None:
    """A failing task whose cause is being tried again no longer fails; unless only its handlers are tried again."""
    if not parent.is_failing:
        return
    handlers = _handlers(agenda, parent)
    children = {child.id for child in agenda.graph.children([parent.id])}
    if children & changed_ids - {handler.id for handler in handlers}:
        agenda.supersede(handlers, Actor.USER)
        parent.is_failing, parent.error = False, None


def _reopen(agenda: Agenda, parent: Task) -> None:
    parent.ended_at = parent.due_at = None
    if not parent.is_failing:
        parent.error = None
    if parent.parent_id is None and parent.state in FINISHED:
        parent.started_at = parent.started_at or agenda.graph.now
        _reopen_attempt(agenda, parent)
    # What had never opened is decided again; what had opened only lost its end.
    agenda.move(parent, State.NONE if parent.started_at is None else State.PLANNED, Actor.USER)


def _reopen_attempt(agenda: Agenda, root: Task) -> None:
    attempt = agenda.graph.attempt(root.attempt_id)
    before, attempt.state = attempt.state, "running"
    attempt.ended_at, attempt.reason, attempt.started_at = None, None, agenda.graph.now
    attempt.is_changed, attempt.is_cancel_requested = True, False
    agenda.graph.record(Event(attempt.id, None, before, "running", Actor.USER, 0, agenda.graph.now))
