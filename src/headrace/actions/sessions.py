"""The logical time of a run that a person starts: a date, or a word such as `daily`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime, tzinfo

from headrace.clock import to_micros
from headrace.definition import Workflow
from headrace.errors import UsageError
from headrace.timetable import Slot, manual_slot, timetable_for, zone_of

WORDS = ("now", "hourly", "daily", "schedule", "last")
NO_TIME = "none"
"""What a person says for a run that is for no time at all."""


def slot_of(workflow: Workflow, text: str | None, now: datetime) -> Slot | None:
    """The slot of a run for the time that `text` says, by the workflow's clock; without text: for now.

    None if it is for no time.
    """
    words = (*WORDS, NO_TIME)
    return None if text == NO_TIME else manual_slot(workflow, logical_time(workflow, text, now, words))


def logical_time(workflow: Workflow, text: str | None, now: datetime, words: Sequence[str] = WORDS) -> datetime:
    """`now`, `hourly`, `daily` (the present hour or day), `schedule`, `last` (the last scheduled time), or a date.

    `words` are those that the caller takes, for whoever writes another one.
    """
    local = now.astimezone(zone_of(workflow.timezone))
    if text in (None, "now"):
        return now.astimezone(UTC)
    if text == "hourly":
        return local.replace(minute=0, second=0, microsecond=0).astimezone(UTC)
    if text == "daily" or (text == "last" and workflow.schedule is None):
        return local.replace(hour=0, minute=0, second=0, microsecond=0).astimezone(UTC)
    if text in ("schedule", "last"):
        return _last_scheduled(workflow, now)
    return _instant(str(text), zone_of(workflow.timezone), words)


def _last_scheduled(workflow: Workflow, now: datetime) -> datetime:
    if workflow.schedule is None:
        raise UsageError(f"workflow `{workflow.name}` has no schedule", hint="use `daily`, `hourly`, `now` or a date")
    timetable = timetable_for(workflow.schedule, workflow.timezone)
    slot = timetable.previous(timetable.slot_at(now)) if timetable.is_periodic else None
    if slot is None:
        raise UsageError(f"the schedule of `{workflow.name}` has no time before now", hint="use `now` or a date")
    return slot.logical_time


def parse_instant(text: str) -> datetime:
    """An instant as people write it, such as `2026-02-03 04:05:06 +0900`; without an offset by this machine's clock."""
    try:
        return _moment(text).astimezone(UTC)
    except (ValueError, OverflowError):
        raise UsageError(f"expected a time such as `2026-02-03 04:05:06 +0900`, got: `{text}`") from None


def _moment(text: str) -> datetime:
    # A space before the offset, which people and other programs write, is not ISO 8601.
    return datetime.fromisoformat(re.sub(r" ([+-]\d\d:?\d\d|Z)$", r"\1", text.strip()))


def parse_time(text: str | None) -> int | None:
    """An instant that a person typed; in UTC unless it says otherwise, as no workflow's clock could be meant."""
    return None if text is None else to_micros(_instant(text, UTC))


def _instant(text: str, zone: tzinfo, words: Sequence[str] = ()) -> datetime:
    try:
        moment = _moment(text)
    except ValueError:
        raise UsageError(
            f"expected a date such as `2026-02-03`, `2026-02-03 04:05:06` or `2026-02-03T04:05:06Z`, got: `{text}`",
            hint=f"or one of the words {', '.join(f'`{word}`' for word in words)}" if words else None,
        ) from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=zone)
    try:
        return moment.astimezone(UTC)
    except OverflowError:
        raise UsageError(f"the date `{text}` is out of range") from None
