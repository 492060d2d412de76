"""Fills in `${secret:name}` where an operator allows secrets: in scripts and in `_env`."""

from __future__ import annotations

import re

from headrace.handoff import Channel, MissingError
from headrace.operators.dig.contract import OperatorError

_REFERENCE = re.compile(r"\$\{secret:([^}]*)\}")


def fill_in_secrets(text: str, channel: Channel) -> str:
    """The text with the project's secrets in place of their references. They are masked in the task's log."""
    return _REFERENCE.sub(lambda match: _secret(match[1].strip(), channel), text)


def _secret(name: str, channel: Channel) -> str:
    try:
        value = str(channel.ask("get_secret", name=name))
    except MissingError:
        raise OperatorError(f"the project has no secret `{name}`") from None
    # A key of several lines is often printed line by line.
    channel.ask("mask", values=list(dict.fromkeys([value, *value.splitlines()])))
    return value
