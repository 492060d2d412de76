"""Fills in `${secret:name}` where an operator allows secrets: in scripts, in `_env`, in requests."""

from __future__ import annotations

import re
from typing import Any

from headrace.handoff import Channel
from headrace.operators.dig.contract import no_secret
from headrace.operators.dig.secret_lookup import find_secret

_REFERENCE = re.compile(r"\$\{secret:([^}]*)\}")


def fill_in_secrets(text: str, channel: Channel) -> str:
    """The text with the project's secrets in place of their references. They are masked in the task's log."""
    return _REFERENCE.sub(lambda match: _secret(match[1].strip(), channel), text)


def filled_in(value: Any, channel: Channel) -> Any:
    """The same for every text in a value."""
    if isinstance(value, str):
        return fill_in_secrets(value, channel)
    if isinstance(value, dict):
        return {key: filled_in(item, channel) for key, item in value.items()}
    if isinstance(value, list):
        return [filled_in(item, channel) for item in value]
    return value


def _secret(name: str, channel: Channel) -> str:
    value = find_secret(channel, name)
    if value is None:
        raise no_secret(name)
    return value
