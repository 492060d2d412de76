"""What tasks ask people, and answering it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from headrace.actions.finding import find_run, find_task
from headrace.clock import Clock, iso, to_micros
from headrace.definition import Person, Question, schema_problem
from headrace.errors import StateError, UsageError, did_you_mean
from headrace.state import answer_event
from headrace.store import (
    QuestionRow,
    RunGraph,
    RunRow,
    Store,
    TaskRow,
    Transaction,
    answer_question,
    list_questions,
    open_question,
)


def show_questions(
    store: Store, run: str | None = None, *, with_closed: bool = False, before: int | None = None, limit: int = 50
) -> list[QuestionRow]:
    """Questions, newest first: of a run or of all, open ones or all."""
    with store.read() as tx:
        attempt_id = None if run is None else find_run(tx, run).attempt_id
        return list_questions(tx, attempt_id, with_closed=with_closed, below=before, limit=limit)


def answer(
    store: Store, clock: Clock, run: str, task: str, chosen: Sequence[str], params: Mapping[str, Any], person: Person
) -> QuestionRow:
    """Answer what a task asks; it goes on with what was chosen and filled in."""
    now = clock.now()

    def work(tx: Transaction) -> QuestionRow:
        row = _asked(tx, run, task)
        question = row.question
        _check_person(question, person)
        event = answer_event(checked_choice(question, chosen), checked_params(question, params), person, iso(now))
        if not answer_question(tx, RunGraph(tx, to_micros(now)), row, event):
            raise StateError(f"task `{row.task}` of run {row.run_id} waits no longer for an answer")
        return row

    return store.transact(work)


def checked_choice(question: Question, chosen: Sequence[str]) -> list[str]:
    """The options that are meant. UsageError if they are none of the question's, or too many, or none."""
    shown = ", ".join(f"`{option}`" for option in question.options)
    if not chosen and len(question.options) == 1:
        return list(question.options)
    if not chosen:
        raise UsageError(f"the question has several options: {shown}", hint="say which one is chosen")
    for option in chosen:
        if option not in question.options:
            hint = did_you_mean(option, question.options) or f"its options are {shown}"
            raise UsageError(f"the question has no option `{option}`", hint=hint)
    if len(chosen) > 1 and not question.is_multiple:
        raise UsageError(f"expected one option, got {len(chosen)}", hint=f"its options are {shown}")
    return list(dict.fromkeys(chosen))


def checked_params(question: Question, params: Mapping[str, Any]) -> dict[str, Any]:
    """What is filled in, over what stood there. UsageError if something is unknown, missing or not as it should be."""
    known = {*question.params, *question.param_schemas}
    for name in params:
        if name not in known:
            raise UsageError(f"the question does not ask for `{name}`", hint=did_you_mean(name, known))
    merged = {**question.params, **params}
    for name, schema in question.param_schemas.items():
        problem = schema_problem(merged[name], schema) if name in merged else "it has no value"
        if problem is not None:
            raise UsageError(f"`{name}` is not valid: {problem}", hint=f"give it with `-p {name}=VALUE`")
    return merged


def _asked(tx: Transaction, run_name: str, task_name: str) -> QuestionRow:
    run = find_run(tx, run_name)
    task = find_task(tx, run, task_name)
    row = open_question(tx, task.id)
    if row is None:
        raise StateError(_why_not(run, task), hint="`headrace questions` lists what is asked")
    return row


def _why_not(run: RunRow, task: TaskRow) -> str:
    return f"task `{task.name}` of run {run.id} asks nothing: it is `{task.state}`"


def _check_person(question: Question, person: Person) -> None:
    known = question.respondents
    if known and not any(person.id in (one.id, one.name) for one in known):
        names = ", ".join(f"`{one.name or one.id}`" for one in known)
        raise UsageError(f"`{person.id}` may not answer: {names} may", hint="say who you are with `--by NAME`")
