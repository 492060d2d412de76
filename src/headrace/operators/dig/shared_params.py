"""`param_set>` and `param_get>`: texts that outlive the run and that all workflows share.

They are the variables that Python DAGs know as well: what one family sets, the other one gets.
"""

from __future__ import annotations

import json
from typing import Any

from headrace.authoring.dig import as_text
from headrace.handoff import MissingError
from headrace.operators.dig.contract import Job, OperatorError, Outcome

_NOT_PARAMS = frozenset(("_command", "_env", "_workdir"))


def run_param_set(job: Job) -> Outcome:
    """Set a variable for each of the task's own parameters."""
    for name, value in _own(job).items():
        job.channel.ask("set_variable", name=name, value=_text(name, value))
    return Outcome()


def run_param_get(job: Job) -> Outcome:
    """Store each variable under the name that its parameter gives it; empty, if there is none."""
    return Outcome(store={target: _variable(job, name) for name, target in _targets(_own(job)).items()})


def _own(job: Job) -> dict[str, Any]:
    """What the task itself says; inherited parameters are no keys of the server's."""
    values = {key: job.params.raw(key) for key in job.own_keys if key not in _NOT_PARAMS and not key.startswith("_")}
    if not values:
        raise OperatorError(f"`{job.operator}>` needs at least one `name: value` below it")
    return values


def _text(name: str, value: Any) -> str:
    try:
        return as_text(value)
    except ValueError as error:
        raise OperatorError(f"expected parameter `{name}` {error}") from None


def _targets(own: dict[str, Any]) -> dict[str, str]:
    return {name: _text(name, target) for name, target in own.items()}


def _variable(job: Job, name: str) -> str:
    try:
        value = job.channel.ask("get_variable", name=name)
    except MissingError:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
