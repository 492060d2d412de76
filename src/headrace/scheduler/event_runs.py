"""Starts a run when the events have come that a workflow's schedule waits for."""

from __future__ import annotations

import hashlib
from datetime import datetime

from headrace.clock import from_micros, to_micros
from headrace.definition import Workflow
from headrace.scheduler.partition_runs import start_for_partitions
from headrace.scheduler.planning import HOLD, has_room
from headrace.store import (
    NewRun,
    Occupation,
    QueuedEvent,
    ScheduleRow,
    Transaction,
    create_run,
    queued_events,
    take_events,
)
from headrace.timetable import is_met, partition_rules


def start_for_events(
    tx: Transaction, row: ScheduleRow, workflow: Workflow, occupation: Occupation, now: datetime
) -> tuple[bool, ScheduleRow]:
    """One run for all events that have come, if they are enough. Returns whether there is one, and the schedule.

    The caller holds the schedule, so that nobody else takes the same events. Those that come meanwhile stay queued and
    have the schedule looked at again.
    """
    schedule = workflow.schedule
    if schedule is None or schedule.type != "assets" or occupation.is_paused:
        return False, row
    rules = partition_rules(schedule.spec)
    if rules is not None:
        return start_for_partitions(tx, row, workflow, rules, now)
    queued = queued_events(tx, row.workflow_id)
    if not is_met(schedule.spec["when"], {one.key for one in queued}):
        return False, row
    if not has_room(workflow, occupation):
        later = to_micros(now + HOLD)
        return False, row._replace(run_at=later if row.run_at is None else min(row.run_at, later))
    run_id = create_run(tx, _new_run(row.workflow_id, queued), to_micros(now))
    if run_id is None:
        return False, row
    take_events(tx, row.workflow_id, [one.event_id for one in queued], run_id)
    return True, row


def _new_run(workflow_id: int, queued: list[QueuedEvent]) -> NewRun:
    newest = max(queued)
    # No event starts a workflow twice, so that a name made of both is taken only once.
    suffix = hashlib.sha256(f"{workflow_id}:{newest.event_id}".encode()).hexdigest()[:8]
    return NewRun(
        workflow_id,
        key=f"asset_triggered__{from_micros(newest.at).isoformat()}_{suffix}",
        type="asset_triggered",
        run_after=newest.at,
    )
