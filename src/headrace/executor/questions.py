"""Questions of user code: asked of the broker, and every secret in the answer goes to the try's masker first."""

from __future__ import annotations

import logging
import time

import msgspec

from headrace.definition import Node
from headrace.executor.contract import Broker, Later, Questions
from headrace.handoff import Answer, Ask, RunContext, Source, TaskRequest
from headrace.logs import Masker

log = logging.getLogger("headrace.executor")


PATIENCE_SECONDS = 10.0
"""For so long a question is asked again when the broker cannot answer it."""


def answer(broker: Broker, request: TaskRequest, ask: Ask, masker: Masker) -> Answer:
    """The answer to one question; waits for a broker that cannot answer now."""
    until = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            return answer_now(broker, request, ask, masker)
        except Later as later:
            if time.monotonic() > until:
                return Answer(id=ask.id, error=str(later))
            time.sleep(later.seconds)


def answer_now(broker: Broker, request: TaskRequest, ask: Ask, masker: Masker) -> Answer:
    """The answer to one question, or `Later`. A broker that fails is an error for the task, not for the executor."""
    if ask.verb == "mask":
        _take_note(ask, masker)
        return Answer(id=ask.id)
    try:
        reply = broker(request, ask)
    except Later:
        raise
    except Exception as error:
        log.exception("could not answer `%s` of task `%s`", ask.verb, request.key)
        return Answer(id=ask.id, error=f"could not answer `{ask.verb}`: {error}")
    if reply.error is None and not reply.is_missing:
        _mask_answer(ask, reply, masker)
    return reply if reply.id == ask.id else msgspec.structs.replace(reply, id=ask.id)


def answer_loading(questions: Questions | None, ask: Ask, masker: Masker) -> Answer:
    """The answer to a question of a file that is being loaded; its secrets are those of every task of the file."""
    if questions is None:
        return Answer(id=ask.id, is_missing=ask.verb != "mask")
    return answer(lambda _, question: questions(question), LOADING, ask, masker)


LOADING = TaskRequest(
    task_id=0,
    fence=0,
    key="",
    node=Node(key=""),
    source=Source(root="", file="", language=""),
    run=RunContext(project="", workflow=""),
)
"""Stands for the request of a task where there is none yet."""


def _take_note(ask: Ask, masker: Masker) -> None:
    values, name = ask.args.get("values", ()), ask.args.get("name")
    if name is None:
        masker.add(value for value in values if isinstance(value, str))
    else:
        for value in values:
            masker.add_sensitive(value, str(name))


def _mask_answer(ask: Ask, reply: Answer, masker: Masker) -> None:
    if ask.verb == "get_variable":
        masker.add_sensitive(msgspec.json.decode(reply.value), str(ask.args.get("name", "")))
    elif ask.verb == "get_secret":
        masker.add([str(msgspec.json.decode(reply.value))])
    elif ask.verb in ("get_connection", "get_notification"):
        fields = msgspec.json.decode(reply.value)
        if isinstance(fields, dict):
            # A password is one, whatever is said about names.
            masker.add([str(fields.get("password") or "")])
            masker.add_sensitive(fields)
