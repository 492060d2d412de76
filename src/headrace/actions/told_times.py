"""The period of a run that a person starts, where only user code can tell it."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from headrace.actions.sessions import NO_TIME, WORDS, logical_time
from headrace.authoring import SlotQuestion
from headrace.errors import UsageError
from headrace.projects import ParsePool
from headrace.store import Version
from headrace.timetable import Slot


def told_slot(version: Version, session: str | None, now: datetime) -> Slot | None:
    """What the workflow's own timetable says about a run for this time. None: it has none, or the run has no time."""
    schedule = version.workflow.schedule
    if schedule is None or schedule.type != "custom" or session == NO_TIME:
        return None
    at = logical_time(version.workflow, session, now, (*WORDS, NO_TIME))
    root = Path(version.project_root)
    if not (root / version.file).is_file():
        raise UsageError(
            f"only `{version.file}` can tell what a run of `{version.workflow.name}` is for, and it is not here",
            hint="trigger it where its project's folder is, or with `--logical-date none`",
        )
    with ParsePool(processes=1) as pool:
        told = pool.ask(root, version.file, SlotQuestion(workflow=version.workflow.name, manual_at=at))
    if told.error is not None:
        raise UsageError(told.error.message, hint=told.error.hint, file=told.error.file, line=told.error.line)
    if told.slot is None:
        return None
    start, end = told.slot.interval_start.astimezone(UTC), told.slot.interval_end.astimezone(UTC)
    return Slot(at, at, start, end)
