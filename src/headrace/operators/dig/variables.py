"""The variables that every `.dig` task has without asking: the run, its times, the task's name."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from headrace.authoring.dig import local_time, neighbours
from headrace.definition import Workflow
from headrace.handoff import RunContext, TaskRequest, session_uuid


def builtin_variables(workflow: Workflow, request: TaskRequest) -> dict[str, Any]:
    """The built-in variables of one task. Parameters that a user passed for the neighbouring times are kept."""
    run = request.run
    variables: dict[str, Any] = {
        "timezone": run.timezone,
        "project_id": run.project_id,
        "session_id": run.run_id,
        "attempt_id": run.attempt_id,
        "session_uuid": session_uuid(run.project, run.workflow, run.run_key),
        "task_name": request.key,
    }
    if run.attempt_name:
        variables["retry_attempt_name"] = run.attempt_name
    time = run.logical_time or run.run_after or run.started_at
    if time is not None:
        session = _forms("session", local_time(time, run.timezone))
        variables.update(session)
        variables.update(_neighbours(workflow, run, time, request.params, session))
    return variables


def _neighbours(
    workflow: Workflow, run: RunContext, time: datetime, params: Mapping[str, Any], session: Mapping[str, Any]
) -> dict[str, Any]:
    variables: dict[str, Any] = {}
    last, following = neighbours(workflow, time)
    for name, scheduled in (("last_session", last), ("next_session", following)):
        found = scheduled or _passed(params.get(f"{name}_time"))
        if found is not None:
            variables.update(_forms(name, local_time(found, run.timezone)))
    executed = run.previous_time or _passed(params.get("last_executed_session_time"))
    if executed is not None:
        return {**variables, **_forms("last_executed_session", local_time(executed, run.timezone))}
    return {**variables, **_NEVER_EXECUTED, "last_executed_session_tz_offset": session["session_tz_offset"]}


def _forms(name: str, time: datetime) -> dict[str, Any]:
    """A local time in all the forms that templates ask for."""
    # Cut out of one text: every task has twelve of these, and asking the C library for each took longest of all.
    text = time.isoformat(timespec="seconds")
    date, clock, offset = text[:10], text[11:19], text[19:]
    return {
        f"{name}_time": text,
        f"{name}_date": date,
        f"{name}_date_compact": date.replace("-", ""),
        f"{name}_local_time": f"{date} {clock}",
        f"{name}_tz_offset": offset.replace(":", ""),
        f"{name}_unixtime": int(time.timestamp()),
    }


_NEVER_EXECUTED = dict.fromkeys(_forms("last_executed_session", datetime.fromtimestamp(0, UTC)), "")


def _passed(value: Any) -> datetime | None:
    try:
        time = datetime.fromisoformat(value)
    except (TypeError, ValueError):
        return None
    return time if time.tzinfo is not None else None
