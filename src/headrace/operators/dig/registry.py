"""Which function is behind `sh>`, `echo>` and the others, and how plug-ins add more.

Named, not imported: a task process pays only for what it uses. An operator is looked for here, then in the project's
own file, then among the entry points of installed packages; all of them are called alike.
"""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Callable
from functools import cache
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any, NamedTuple

from headrace.authoring.dig import RETRY_QUESTION
from headrace.authoring.dig.operator_names import (
    ENTRY_POINTS,
    OPERATOR_FILE,
    declare_operator,
    defined_operators,
    installed_operators,
)
from headrace.errors import did_you_mean
from headrace.operators.dig.contract import Job, Operator, OperatorError, Outcome


class Registered(NamedTuple):
    run: Operator
    obeys_retry: bool = True
    """Whether `_retry` covers the operator's own failure. It always covers the failure of its subtasks."""


_BUILT_IN = {
    "asset": "assets:run_asset",
    "bq": "bigquery:run_query",
    "bq_ddl": "bigquery_ddl:run_ddl",
    "bq_extract": "bigquery:run_extract",
    "bq_load": "bigquery:run_load",
    "call": "calling:run_call",
    "call_dag": "requiring:run_call_dag",
    "echo": "control:run_echo",
    "embulk": "embulk:run_embulk",
    "fail": "control:run_fail",
    "for_each": "loops:run_for_each",
    "for_range": "loops:run_for_range",
    "gcs_wait": "object_waits:run_gcs_wait",
    "http": "web:run_http",
    "http_call": "web_calling:run_http_call",
    "if": "control:run_if",
    "loop": "loops:run_loop",
    "mail": "mailing:run_mail",
    "notify": "notifying:run_notify",
    "param_get": "shared_params:run_param_get",
    "param_set": "shared_params:run_param_set",
    "pg": "postgres:run_pg",
    "py": "python:run_python",
    "rb": "ruby:run_ruby",
    "redshift": "redshift:run_redshift",
    "redshift_load": "redshift_copy:run_load",
    "redshift_unload": "redshift_copy:run_unload",
    "require": "requiring:run_require",
    "s3_wait": "object_waits:run_s3_wait",
    "sh": "shell:run_shell",
    "td": "td_queries:run_td",
    "td_ddl": "td_tables:run_td_ddl",
    "td_for_each": "td_queries:run_td_for_each",
    "td_load": "td_jobs:run_td_load",
    "td_result_export": "td_jobs:run_td_result_export",
    "td_run": "td_queries:run_td_run",
    "td_table_export": "td_jobs:run_td_table_export",
    "td_wait": "td_waits:run_td_wait",
    "td_wait_table": "td_waits:run_td_wait_table",
    "wait": "control:run_wait",
}
"""The module beside this one and its function."""
REHEARSAL = "_rehearsal"
"""The operator of a try that does nothing. No file can name it."""
REHEARSED_MODULE = "headrace.operators.dig.rehearsed"
"""What a `py>` task imports in such a try."""
_MODULES = {**_BUILT_IN, RETRY_QUESTION: "control:run_retry_question", REHEARSAL: "rehearsing:run_rehearsal"}
"""With what only we ask for."""
_NOT_RETRIED = frozenset((RETRY_QUESTION, "echo", "fail", "for_each", "for_range", "if", "loop", "notify", "wait"))
_operators: dict[str, Registered] = {}
"""What was registered by hand, and what was looked up before."""


def register(name: str, run: Operator, *, obeys_retry: bool = True) -> None:
    """Make `name>` an operator in this process. A later registration replaces an earlier one."""
    _operators[name] = Registered(run, obeys_retry)
    declare_operator(name)


def operator_names() -> list[str]:
    """Every operator that comes with Headrace."""
    return sorted(_BUILT_IN)


def find_operator(name: str, root: Path | None = None) -> Registered:
    """The operator of this name, for a project; or an OperatorError that suggests another one."""
    if name in _operators:
        return _operators[name]
    if name in _MODULES:
        return _operators.setdefault(name, _built_in(name))
    own = defined_operators(root) if root is not None else {}
    if root is not None and name in own:
        return _plugged_in(name, _operator_file(root), own[name])
    if name in installed_operators():
        return _operators.setdefault(name, _installed(name))
    hint = did_you_mean(f"{name}>", [f"{known}>" for known in {*_BUILT_IN, *own, *_operators, *installed_operators()}])
    raise OperatorError(f"unknown operator `{name}>`", hint=hint, is_retryable=False)


def _built_in(name: str) -> Registered:
    module, function = _MODULES[name].split(":")
    run: Operator = getattr(importlib.import_module(f"headrace.operators.dig.{module}"), function)
    return Registered(run, obeys_retry=name not in _NOT_RETRIED)


def _installed(name: str) -> Registered:
    # A task that needs none of these should not have what finds them in memory.
    from importlib.metadata import entry_points

    (found, *_) = entry_points(group=ENTRY_POINTS, name=name)
    try:
        return _registered(found.load())
    except Exception as error:
        message = f"could not load operator `{name}>` from `{found.value}`: {type(error).__name__}: {error}"
        raise OperatorError(message, is_retryable=False) from error


def _plugged_in(name: str, module: Any, attribute: str) -> Registered:
    found = getattr(module, attribute, None)
    if not callable(found):
        message = f"`{attribute}` of `{OPERATOR_FILE}` is not there once the file has run"
        raise OperatorError(f"operator `{name}>` is missing: {message}", is_retryable=False)
    return _registered(found)


def _registered(found: Any) -> Registered:
    """A function is called with the job; a class is made with the job, and its `run` is called."""
    obeys_retry = bool(getattr(found, "obeys_retry", True))
    if not inspect.isclass(found):
        return Registered(found, obeys_retry)

    def run(job: Job) -> Outcome | None:
        make: Callable[[Job], Any] = found
        outcome: Outcome | None = make(job).run()
        return outcome

    return Registered(run, obeys_retry)


@cache
def _operator_file(root: Path) -> Any:
    # Under a name of its own, so that two projects in one process do not share the module.
    name = f"dig_operators_{abs(hash(root)):x}"
    spec = spec_from_file_location(name, root / OPERATOR_FILE)
    assert spec is not None and spec.loader is not None, "the name ends in .py"
    module = module_from_spec(spec)
    sys.path += [] if str(root) in sys.path else [str(root)]
    spec.loader.exec_module(module)
    return module
