"""Runs that do not come from a schedule but have its clock."""

from __future__ import annotations

from datetime import UTC, datetime

from headrace.definition import Workflow
from headrace.timetable.asset_conditions import condition_keys
from headrace.timetable.partitions import MISFITS, KeyMistake, PartitionRules, check_key, partition_rules
from headrace.timetable.recurring import RecurringTimetable
from headrace.timetable.schedules import timetable_for
from headrace.timetable.slots import Slot


def manual_slot(workflow: Workflow, at: datetime) -> Slot:
    """The slot of a run that somebody starts for a time; its interval is the schedule's last complete one."""
    if workflow.schedule is None:
        at = at.astimezone(UTC)
        return Slot(at, at, at, at)
    return timetable_for(workflow.schedule, workflow.timezone).manual(at)


def time_of_partition(workflow: Workflow, key: str) -> datetime | None:
    """When the period begins that a partition of a workflow stands for; None if it stands for none.

    Raises a KeyMistake if no run of the workflow can be for it.
    """
    check_key(key)
    if not workflow.has_partitions:
        raise KeyMistake(f"workflow `{workflow.name}` has no partitions")
    if workflow.schedule is None:
        return None
    rules = partition_rules(workflow.schedule.spec)
    if rules is not None:
        return _time_by_rules(rules, key)
    timetable = timetable_for(workflow.schedule, workflow.timezone)
    partitions = timetable.partitions if isinstance(timetable, RecurringTimetable) else None
    return None if partitions is None else partitions.time_of(key)


def _time_by_rules(rules: PartitionRules, key: str) -> datetime | None:
    try:
        found = {rules.mapper(event_key).instant(key) for event_key in condition_keys(rules.when)}
    except MISFITS as error:
        raise KeyMistake(f"`{key}` cannot be the key of a partition: {error}") from None
    told = found - {None}
    return told.pop() if len(told) == 1 else None
