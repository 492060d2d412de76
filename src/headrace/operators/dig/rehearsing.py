"""What a warm parent and its waiting children do to get ready: the work of `py>` and `sh>` tasks, without a task."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import Any

from headrace.authoring.dig import as_list
from headrace.operators.dig.contract import Job, OperatorError, Outcome, Params
from headrace.operators.dig.registry import REHEARSED_MODULE, find_operator

_NO_PROGRAM = "/\0"
"""No program can have this name, which Python notices once everything is ready for the start. To have the system refuse
a start takes half as long as a start."""
_SETTINGS: dict[str, dict[str, Any]] = {
    "py": {"_command": f"{REHEARSED_MODULE}.nothing"},
    "sh": {"_command": ":", "shell": [_NO_PROGRAM]},
}


def run_rehearsal(job: Job) -> Outcome:
    """Run each of the operators that `_command` lists, up to where somebody could notice."""
    values = job.params.everything()
    for name in job.params.read("_command", as_list):
        params = Params({**values, **_SETTINGS[name]}, name)
        with suppress(OperatorError):
            find_operator(name).run(replace(job, operator=name, params=params))
    return Outcome()
