"""Things shown as `key: value` under a heading, which scripts can read as well as people."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import datetime

import click

from headrace.cli.printing import instant
from headrace.clock import from_micros
from headrace.handoff import session_uuid
from headrace.store import AttemptRow, RunRow
from headrace.timetable import zone_of


def print_block(pairs: Iterable[tuple[str, object]], indent: int = 2) -> None:
    """One thing, with an empty line after it."""
    for key, value in pairs:
        click.echo(f"{' ' * indent}{key}: {'' if value is None else value}".rstrip())
    click.echo()


def print_count(count: int) -> None:
    click.echo(f"{count} entries.")


def shown_time(micros: int | None, timezone: str | None = None) -> str | None:
    """`2026-02-03 04:05:06 +0900`, by the clock of a time zone or by that of this machine."""
    if micros is None:
        return None
    moment: datetime = from_micros(micros).astimezone(None if timezone is None else zone_of(timezone))
    return moment.strftime("%Y-%m-%d %H:%M:%S %z")


def status_of(state: str, *, is_cancel_requested: bool = False) -> str:
    """The state of an attempt as one of four words: success, killed, error, running."""
    if state in ("queued", "running"):
        return "running"
    if state == "success":
        return "success"
    return "killed" if is_cancel_requested or state == "canceled" else "error"


def print_attempt(run: RunRow, attempt: AttemptRow, timezone: str) -> None:
    """An attempt with the session that it belongs to."""
    print_block(
        [
            ("session id", run.id),
            ("attempt id", attempt.label),
            ("uuid", session_uuid(run.project, run.workflow, run.key)),
            ("project", run.project),
            ("workflow", run.workflow),
            ("session time", shown_time(run.logical_at, timezone)),
            ("retry attempt name", attempt.name),
            ("revision", attempt.revision),
            ("params", _json(attempt.params)),
            ("created at", shown_time(attempt.created_at)),
            ("finished at", shown_time(attempt.ended_at)),
            ("kill requested", str(attempt.is_cancel_requested).lower()),
            ("status", status_of(attempt.state, is_cancel_requested=attempt.is_cancel_requested)),
        ]
    )


def describe_attempt(attempt: AttemptRow) -> dict[str, object]:
    """An attempt as JSON shows it."""
    return {
        "attempt_id": attempt.label,
        "run_id": attempt.run_id,
        "number": attempt.number,
        "name": attempt.name,
        "state": attempt.state,
        "status": status_of(attempt.state, is_cancel_requested=attempt.is_cancel_requested),
        "revision": attempt.revision,
        "params": attempt.params,
        "created_at": instant(attempt.created_at),
        "started_at": instant(attempt.started_at),
        "ended_at": instant(attempt.ended_at),
    }


def _json(params: dict[str, object]) -> str:
    return json.dumps(params, ensure_ascii=False)
