"""Parameters of runs: as people type them (`KEY=VALUE`), and whether they are what the workflow asks for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from headrace.definition import Workflow, schema_problem
from headrace.errors import UsageError


def parse_params(pairs: Iterable[str]) -> dict[str, Any]:
    """`n=5` is a number, `names=["a"]` a list, `name=a` and `name="5"` are strings: JSON where it is JSON."""
    params = {}
    for pair in pairs:
        key, equals, text = pair.partition("=")
        if not equals or not key.strip():
            raise UsageError(f"expected a parameter as `KEY=VALUE`, got: `{pair}`")
        params[key.strip()] = _value(text)
    return params


def check_params(workflow: Workflow, params: Mapping[str, Any]) -> None:
    """UsageError unless the parameters of a new run, over the defaults, are what the workflow's schemas ask for."""
    merged = {**workflow.params, **params}
    for name, schema in workflow.param_schemas.items():
        problem = schema_problem(merged[name], schema) if name in merged else "it has no value and no default"
        if problem is not None:
            raise UsageError(
                f"parameter `{name}` of workflow `{workflow.name}` is not valid: {problem}",
                hint=f"give it with `-p {name}=VALUE`" if name not in merged else None,
            )


def _value(text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return text
