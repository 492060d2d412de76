"""Questions of user code: asked of the broker, and every secret in the answer goes to the try's masker first."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import msgspec

from headrace.executor.contract import Broker
from headrace.handoff import Answer, Ask, TaskRequest
from headrace.logs import Masker, is_sensitive, sensitive_values

log = logging.getLogger("headrace.executor")


def answer(broker: Broker, request: TaskRequest, ask: Ask, masker: Masker) -> Answer:
    """The answer to one question. A broker that fails is an error for the task, not for the executor."""
    if ask.verb == "mask":
        masker.add(value for value in ask.args.get("values", ()) if isinstance(value, str))
        return Answer(id=ask.id)
    try:
        reply = broker(request, ask)
    except Exception as error:
        log.exception("could not answer `%s` of task `%s`", ask.verb, request.key)
        return Answer(id=ask.id, error=f"could not answer `{ask.verb}`: {error}")
    if reply.error is None and ask.verb in _SECRETS:
        masker.add(_SECRETS[ask.verb](ask, msgspec.json.decode(reply.value)))
    return reply if reply.id == ask.id else msgspec.structs.replace(reply, id=ask.id)


def _of_connection(ask: Ask, value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        yield from sensitive_values(value)


def _of_secret(ask: Ask, value: Any) -> Iterator[str]:
    yield from sensitive_values(value, "secret")


def _of_variable(ask: Ask, value: Any) -> Iterator[str]:
    name = str(ask.args.get("name", ""))
    yield from sensitive_values(value, name if is_sensitive(name) else "")


_SECRETS = {
    "get_connection": _of_connection,
    "get_notification": _of_connection,
    "get_secret": _of_secret,
    "get_variable": _of_variable,
}
