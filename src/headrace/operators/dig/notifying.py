"""The `notify` operator: tells people something in the way that the settings say, or nobody if they say nothing."""

from __future__ import annotations

from typing import Any

from headrace.clock import SystemClock
from headrace.handoff import MissingError
from headrace.operators.dig.contract import Job, OperatorError, Outcome, PollAgain
from headrace.operators.notification import NotificationError, secrets_of, send_notification

_FAILURES = "failures"
_FROM_PARAMS = ("project_id", "attempt_id", "session_id", "task_name", "timezone", "session_uuid", "session_time")


def run_notify(job: Job) -> Outcome:
    """Send a message. What goes wrong is tried again, without holding a process meanwhile."""
    payload = _payload(job)
    try:
        settings: dict[str, Any] = job.channel.ask("get_notification")
    except MissingError:
        return Outcome()
    job.channel.ask("mask", values=secrets_of(settings))
    try:
        send_notification(settings, payload)
    except NotificationError as error:
        failures = int(job.state.get(_FAILURES, 0))
        if failures >= settings["retries"]:
            raise OperatorError(str(error), type_name="NotificationError") from None
        wait = min(settings["min_wait_seconds"] * 2**failures, settings["max_wait_seconds"])
        raise PollAgain(wait, {_FAILURES: failures + 1}) from None
    return Outcome()


def _payload(job: Job) -> dict[str, Any]:
    values = job.params.everything()
    return {
        "timestamp": SystemClock().now().isoformat(timespec="seconds"),
        "message": job.params.text("_command"),
        "site_id": 0,
        "project_name": job.run.project,
        "workflow_name": job.run.workflow,
        "revision": job.revision,
        **{name: values.get(name) for name in _FROM_PARAMS},
    }
