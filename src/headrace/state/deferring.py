"""Waiting for a trigger: how a task begins to, and what becomes of it when the trigger has something to tell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from headrace.definition import Deferral, Person, Question
from headrace.handoff import Fired, Resume, TaskError
from headrace.state.agenda import Agenda
from headrace.state.task import Actor, State, Task

TIMED_OUT = "TaskDeferralTimeout"
"""The type of the error by which a try goes on whose trigger did not fire in time."""

_json = msgspec.json.Encoder()
_resumes = msgspec.json.Decoder(Resume)


def defer(agenda: Agenda, task: Task, deferral: Deferral, actor: Actor) -> None:
    """Let go of the task until the trigger fires or the time is over."""
    resume = Resume(
        method=deferral.method,
        kwargs=deferral.kwargs,
        ends_in_process=deferral.ends_in_process,
        default=None if deferral.question is None else _answer_by_default(deferral.question),
    )
    task.resume = _json.encode(resume).decode()
    task.agent_id, task.due_at = None, _due_at(task, deferral, agenda.graph.now)
    agenda.move(task, State.DEFERRED, actor)
    agenda.graph.add_trigger(task, deferral)


def begin_deferred(agenda: Agenda, task: Task, deferral: Deferral, actor: Actor) -> None:
    """Begin a try by waiting."""
    now = agenda.graph.now
    task.try_number += 1
    task.scheduled_at = task.started_at = now
    task.first_started_at, task.ended_at = task.first_started_at or now, None
    task.poll_state = None
    defer(agenda, task, deferral, actor)


def go_on(agenda: Agenda, task: Task, actor: Actor, fired: Fired) -> None:
    """Have a process go on with the try."""
    resume = msgspec.structs.replace(
        _resumes.decode(task.resume or "{}"), event=fired.event, error=fired.error, outcome=fired.outcome
    )
    task.resume = _json.encode(resume).decode()
    agenda.schedule(task, actor, is_new_try=False)


def time_out(agenda: Agenda, task: Task) -> None:
    """What it waited for did not come in time: the try goes on, and is told so, or with what is to count then."""
    default = _resumes.decode(task.resume or "{}").default
    if default is not None:
        go_on(agenda, task, Actor.TIMER, Fired(trigger_id=0, event=default))
        return
    error = TaskError(type=TIMED_OUT, message="the trigger did not fire in time")
    go_on(agenda, task, Actor.TIMER, Fired(trigger_id=0, error=error))


def _answer_by_default(question: Question) -> dict[str, Any] | None:
    if question.defaults is None:
        return None
    return answer_event(question.defaults, question.params, None, None)


def answer_event(
    chosen: Sequence[str], params: Mapping[str, Any], person: Person | None, at: str | None
) -> dict[str, Any]:
    """The event by which a task goes on whose question was answered; without a person, by what counts then."""
    by = None if person is None else {"id": person.id, "name": person.name or person.id}
    return {"chosen": list(chosen), "params": dict(params), "by": by, "at": at}


def is_ended_by(task: Task, fired: Fired) -> bool:
    """Whether the task ends with this, without another process."""
    return fired.outcome != "" and not _resumes.decode(task.resume or "{}").ends_in_process


def _due_at(task: Task, deferral: Deferral, now: int) -> int | None:
    """Whichever is first: the end of this wait, or of the time that the whole try has, waits included."""
    ends = []
    if deferral.timeout_seconds is not None:
        ends.append(now + round(deferral.timeout_seconds * 1_000_000))
    if task.timeout_seconds is not None:
        ends.append((task.started_at or now) + round(task.timeout_seconds * 1_000_000))
    return min(ends, default=None)
