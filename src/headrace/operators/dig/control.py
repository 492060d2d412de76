"""The small operators: `echo>`, `fail>`, `if>`, `wait>`."""

from __future__ import annotations

import time
from datetime import datetime

from headrace.authoring.dig import as_seconds
from headrace.clock import SystemClock
from headrace.operators.dig.contract import Job, OperatorError, Outcome, PollAgain

_WAIT_STARTED = "wait_started_at"


def run_echo(job: Job) -> Outcome:
    """Print a text."""
    print(job.params.text("_command"), flush=True)
    return Outcome()


def run_fail(job: Job) -> Outcome:
    """Fail with a message."""
    raise OperatorError(job.params.text("_command"), type_name="Failure")


def run_if(job: Job) -> Outcome:
    """Grow `_do` or `_else_do`. A branch that is not there is an empty one."""
    then, otherwise = job.params.raw("_do"), job.params.raw("_else_do")
    if then is None and otherwise is None:
        raise OperatorError(f"task `{job.key}` needs `_do` or `_else_do`")
    return Outcome(subtasks=then if job.params.boolean("_command") else otherwise)


def run_wait(job: Job) -> Outcome:
    """Let a time pass, without holding a process unless `blocking` is set."""
    duration = job.params.seconds("_command")
    interval = job.params.read("poll_interval", as_seconds, None)
    if job.params.boolean("blocking"):
        if interval is not None:
            raise OperatorError("`poll_interval` cannot be combined with `blocking`")
        time.sleep(duration)
        return Outcome()
    now = SystemClock().now()
    started = datetime.fromisoformat(job.state[_WAIT_STARTED]) if _WAIT_STARTED in job.state else now
    remaining = duration - (now - started).total_seconds()
    if remaining <= 0:
        return Outcome()
    after = remaining if interval is None else min(float(interval), remaining)
    raise PollAgain(after, {_WAIT_STARTED: started.isoformat()})
