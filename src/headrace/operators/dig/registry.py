"""Which function is behind `sh>`, `echo>` and the others, and how a plug-in adds its own."""

from __future__ import annotations

from typing import NamedTuple

from headrace.authoring.dig.operator_names import declare_operator
from headrace.errors import did_you_mean
from headrace.operators.dig.assets import run_asset
from headrace.operators.dig.calling import run_call
from headrace.operators.dig.contract import Operator, OperatorError
from headrace.operators.dig.control import run_echo, run_fail, run_if, run_wait
from headrace.operators.dig.loops import run_for_each, run_for_range, run_loop
from headrace.operators.dig.notifying import run_notify
from headrace.operators.dig.python import run_python
from headrace.operators.dig.shell import run_shell


class Registered(NamedTuple):
    run: Operator
    obeys_retry: bool = True
    """Whether `_retry` covers the operator's own failure. It always covers the failure of its subtasks."""


_operators = {
    "asset": Registered(run_asset),
    "call": Registered(run_call),
    "echo": Registered(run_echo, obeys_retry=False),
    "fail": Registered(run_fail, obeys_retry=False),
    "for_each": Registered(run_for_each, obeys_retry=False),
    "for_range": Registered(run_for_range, obeys_retry=False),
    "if": Registered(run_if, obeys_retry=False),
    "loop": Registered(run_loop, obeys_retry=False),
    "notify": Registered(run_notify, obeys_retry=False),
    "py": Registered(run_python),
    "sh": Registered(run_shell),
    "wait": Registered(run_wait, obeys_retry=False),
}


def register(name: str, run: Operator, *, obeys_retry: bool = True) -> None:
    """Make `name>` an operator. A later registration replaces an earlier one."""
    _operators[name] = Registered(run, obeys_retry)
    declare_operator(name)


def find_operator(name: str) -> Registered:
    """The operator of this name, or an OperatorError that suggests another one."""
    found = _operators.get(name)
    if found is None:
        hint = did_you_mean(f"{name}>", [f"{known}>" for known in _operators])
        raise OperatorError(f"unknown operator `{name}>`", hint=hint, is_retryable=False)
    return found
