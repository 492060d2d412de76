"""E-mails about failed tries, for tasks that ask for them."""

from __future__ import annotations

import logging
from html import escape
from typing import Any

from headrace.runner.programs import named

SEND_EMAIL = "headrace.operators.email:send_email"
"""Named, not imported: what speaks SMTP is large, and few tasks need it."""

log = logging.getLogger("airflow.task")


def mail_about_failure(context: Any, *, is_final: bool) -> None:
    """Write to the task's addresses that a try failed, if it wants that. What goes wrong is logged."""
    settings, ti = context["task"].settings, context["ti"]
    is_wanted = settings.email_on_failure if is_final else settings.email_on_retry
    if not settings.email or not is_wanted:
        return
    try:
        named(SEND_EMAIL)(settings.email, f"Airflow alert: {ti!r}", _body(ti, context.get("exception")))
    except Exception:
        log.exception("could not send an e-mail about task `%s`", ti.task_id)


def _body(ti: Any, exception: Any) -> str:
    tries = f"Try {ti.try_number} out of {ti.max_tries + 1}"
    return f"{tries}<br>Exception:<br>{escape(str(exception))}<br>Host: {escape(ti.hostname)}<br>"
