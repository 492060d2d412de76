"""Environment variables of scripts: parameters, and what `_env` adds."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from typing import Any

from headrace.authoring.dig import as_map
from headrace.handoff import Channel
from headrace.operators.dig.contract import OperatorError, Params
from headrace.operators.dig.secret_references import fill_in_secrets

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_NOT_EXPORTED = frozenset(("_command", "_do", "_else_do", "_env", "_parallel", "_retry", "_secrets", "_type"))
"""Keys that direct the task and are not parameters of the user's; `_command` may be longer than a variable can be."""


def as_variables(params: Mapping[str, Any]) -> dict[str, str]:
    """Every parameter whose name a shell accepts: texts as they are, everything else as JSON."""
    return {
        key: _text(value)
        for key, value in params.items()
        if key not in _NOT_EXPORTED and _NAME.fullmatch(key) is not None
    }


def own_variables(params: Params, channel: Channel) -> dict[str, str]:
    """The task's `_env`, with its secrets filled in."""
    variables = params.read("_env", as_map, {})
    for key in variables:
        if _NAME.fullmatch(key) is None:
            raise OperatorError(f"expected the names in `_env` to be letters, digits and `_`, got: `{key}`")
    return {key: fill_in_secrets(_text(value), channel) for key, value in variables.items()}


def process_environment(variables: Mapping[str, str]) -> dict[str, str]:
    """The task process's own environment with these variables added."""
    for key, value in variables.items():
        if "\0" in value:
            raise OperatorError(f"parameter `{key}` holds a NUL character, which an environment variable cannot")
    return {**os.environ, **variables}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":"))
