"""The small operators: `echo>`, `fail>`, `if>`, `wait>`, and what evaluates the `_retry` of a group."""

from __future__ import annotations

import time

from headrace.authoring.dig import as_seconds, parse_retry
from headrace.operators.dig.contract import Job, OperatorError, Outcome, PollAgain
from headrace.operators.dig.poll_intervals import kept_start, waited_seconds


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


def run_retry_question(job: Job) -> Outcome:
    """Say how often the group above is tried."""
    return Outcome(retry=job.params.read("_command", parse_retry))


def run_wait(job: Job) -> Outcome:
    """Let a time pass, without holding a process unless `blocking` is set."""
    duration = job.params.seconds("_command")
    interval = job.params.read("poll_interval", as_seconds, None)
    if job.params.boolean("blocking"):
        if interval is not None:
            raise OperatorError("`poll_interval` cannot be combined with `blocking`")
        time.sleep(duration)
        return Outcome()
    remaining = duration - waited_seconds(job)
    if remaining <= 0:
        return Outcome()
    raise PollAgain(remaining if interval is None else min(float(interval), remaining), kept_start(job))
