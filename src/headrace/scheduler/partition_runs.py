"""Starts the runs of partitions: one for each, when the events have come that it waits for."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterator, Sequence
from datetime import datetime

import msgspec

from headrace.clock import from_micros, to_micros
from headrace.definition import Workflow
from headrace.store import (
    NewRun,
    PartitionEvent,
    ScheduleRow,
    Transaction,
    create_run,
    events_of_partitions,
    forget_partitions,
    give_partition,
    sort_events,
    unsorted_events,
)
from headrace.timetable import Contribution, KeyMistake, PartitionRules

_log = logging.getLogger("headrace.scheduler")
_canonical = msgspec.json.Encoder(order="deterministic")

MOST_EVENTS = 500
"""How many events of a workflow are sorted in one turn; the others have theirs at once."""


def start_for_partitions(
    tx: Transaction, row: ScheduleRow, workflow: Workflow, rules: PartitionRules, now: datetime
) -> tuple[bool, ScheduleRow]:
    """A run for each partition that has become complete. Returns whether there is one, and the schedule.

    The caller holds the schedule. A partition has a run of its own, whatever else runs: nothing is held back here, as
    the limits of a workflow say when its runs start.
    """
    digest = rules_digest(workflow)
    forget_partitions(tx, row.workflow_id, digest)
    events = unsorted_events(tx, row.workflow_id, MOST_EVENTS)
    if not events:
        return False, row
    found = [(event, list(_partitions(event, workflow, rules))) for event in events]
    sort_events(tx, row.workflow_id, found, digest)
    touched = sorted({partition for _, partitions in found for partition in partitions})
    waiting = events_of_partitions(tx, row.workflow_id, touched)
    started = [_start(tx, row.workflow_id, partition, waiting[partition], rules, now) for partition in touched]
    return any(started), row._replace(run_at=to_micros(now)) if len(events) == MOST_EVENTS else row


def rules_digest(workflow: Workflow) -> str:
    """Changes if and only if events may belong to other partitions, or other events be needed."""
    assert workflow.schedule is not None, "it waits for partitions"
    spec = workflow.schedule.spec
    return hashlib.sha256(_canonical.encode([spec["when"], spec["partitions"]])).hexdigest()


def _partitions(event: PartitionEvent, workflow: Workflow, rules: PartitionRules) -> Iterator[str]:
    """The partitions that an event is for; none, with a word about it, if its key does not fit."""
    if event.partition_key is None:
        return
    try:
        yield from rules.partitions_of(event.key, event.partition_key)
    except KeyMistake as mistake:
        _log.warning(
            "event %s of `%s` about partition `%s` starts nothing of workflow `%s`: %s",
            event.event_id,
            event.key.partition(":")[2],
            event.partition_key,
            workflow.name,
            mistake,
        )


def _start(
    tx: Transaction,
    workflow_id: int,
    partition: str,
    events: Sequence[PartitionEvent],
    rules: PartitionRules,
    now: datetime,
) -> bool:
    contributions = [_contribution(one) for one in events]
    if not rules.is_ready(partition, contributions):
        return False
    about = rules.time_of(partition, contributions)
    new = _new_run(workflow_id, partition, about, max(events))
    run_id = create_run(tx, new, to_micros(now))
    if run_id is None:
        return False
    give_partition(tx, workflow_id, partition, [one.event_id for one in events], run_id)
    return True


def _contribution(event: PartitionEvent) -> Contribution:
    at = None if event.partition_at is None else from_micros(event.partition_at)
    return Contribution(event.key, event.partition_key or "", at)


def _new_run(workflow_id: int, partition: str, about: datetime | None, newest: PartitionEvent) -> NewRun:
    # No event starts a partition twice, so that a name made of all three is taken only once.
    suffix = hashlib.sha256(f"{workflow_id}:{newest.event_id}:{partition}".encode()).hexdigest()[:8]
    return NewRun(
        workflow_id,
        key=f"asset_triggered__{from_micros(newest.at).isoformat()}_{suffix}",
        type="asset_triggered",
        run_after=newest.at,
        partition_key=partition,
        partition_at=None if about is None else to_micros(about),
    )
