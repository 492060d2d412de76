"""What it means for a task that an agent takes it."""

from __future__ import annotations

from headrace.state.task import Actor, Event, State, Task, check_move

TIMEOUT_GRACE_SECONDS = 30
"""How much later than its agent the scheduler ends a try that is over its time limit."""


def take(task: Task, agent_id: int, now: int) -> list[Event]:
    """Give a scheduled task to an agent, which begins to work on it. What goes on after a wait keeps its beginning."""
    events = [_move(task, State.QUEUED, now), _move(task, State.RUNNING, now)]
    task.fence += 1
    task.agent_id, task.queued_at, task.ended_at = agent_id, now, None
    task.first_started_at = now if task.first_started_at is None else task.first_started_at
    if task.resume is None or task.started_at is None:
        task.started_at = now
    task.due_at = None
    if task.timeout_seconds is not None:
        task.due_at = task.started_at + int((task.timeout_seconds + TIMEOUT_GRACE_SECONDS) * 1_000_000)
    return events


def _move(task: Task, after: State, now: int) -> Event:
    check_move(task, after, Actor.CLAIM)
    before, task.state = task.state, after
    return Event(task.attempt_id, task.id, before, after, Actor.CLAIM, task.try_number, now)
