"""The operators of `.dig` tasks (`sh>`, `py>`, `for_each>`, …) and the small contract by which plug-ins add more.

This room imports `authoring.dig`, `handoff` and `template`, and knows nothing of how a task came to run.
"""

from headrace.operators.dig.contract import Job, Operator, OperatorError, Outcome, Params, PollAgain
from headrace.operators.dig.folders import working_folder
from headrace.operators.dig.registry import (
    REHEARSAL,
    REHEARSED_MODULE,
    Registered,
    find_operator,
    operator_names,
    register,
)
from headrace.operators.dig.secret_scope import SecretScope
from headrace.operators.dig.variables import builtin_variables

__all__ = [
    "REHEARSAL",
    "REHEARSED_MODULE",
    "Job",
    "Operator",
    "OperatorError",
    "Outcome",
    "Params",
    "PollAgain",
    "Registered",
    "SecretScope",
    "builtin_variables",
    "find_operator",
    "operator_names",
    "register",
    "working_folder",
]
