"""Events that wait for the run of a partition.

Whoever holds a workflow's schedule says for which partitions each queued event is, takes it out of the queue and keeps
it here, once for each of them, until their runs start. What was sorted by rules that have changed since is forgotten.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from headrace.store.assets import ATTACH, FORGET_PARTITIONS, TAKE
from headrace.store.database import Transaction
from headrace.store.sql import Sql

UNSORTED = Sql(
    """
    SELECT asset_queue.event_id, asset_queue.key, asset_event.at, asset_event.partition_key, asset_event.partition_at
    FROM asset_queue JOIN asset_event ON asset_event.id = asset_queue.event_id
    WHERE asset_queue.workflow_id = :workflow_id ORDER BY asset_queue.event_id, asset_queue.key LIMIT :limit
    """
)
KEEP = Sql(
    """
    INSERT INTO partition_event (workflow_id, partition_key, event_id, key, rules)
    SELECT workflow_id, partition_key, event_id, key, rules FROM ROWS(:rows) WHERE true ON CONFLICT DO NOTHING
    """,
    rows=(
        ("workflow_id", "bigint"), ("partition_key", "text"), ("event_id", "bigint"), ("key", "text"),
        ("rules", "text"),
    ),
)  # fmt: skip
WAITING = Sql(
    """
    SELECT partition_event.partition_key, partition_event.event_id, partition_event.key, asset_event.at,
           asset_event.partition_key, asset_event.partition_at
    FROM partition_event JOIN asset_event ON asset_event.id = partition_event.event_id
    WHERE partition_event.workflow_id = :workflow_id AND partition_event.partition_key IN :partitions[]
    ORDER BY partition_event.event_id
    """
)
START = Sql("DELETE FROM partition_event WHERE workflow_id = :workflow_id AND partition_key = :partition_key")
PENDING = Sql(
    """
    SELECT partition_key, count(DISTINCT event_id), min(event_id) FROM partition_event
    WHERE workflow_id = :workflow_id GROUP BY partition_key ORDER BY min(event_id), partition_key LIMIT :limit
    """
)


class PartitionEvent(NamedTuple):
    """An event about a partition of an asset, under one of the names that a schedule knows it by."""

    event_id: int
    key: str
    at: int
    partition_key: str | None
    partition_at: int | None


class PendingPartition(NamedTuple):
    """A partition whose run waits for more events."""

    partition_key: str
    events: int
    """How many have come for it."""


def unsorted_events(tx: Transaction, workflow_id: int, limit: int) -> list[PartitionEvent]:
    """Events that have come for a workflow's schedule and for which nobody has said to which partitions they belong."""
    return [PartitionEvent(*row) for row in tx.run(UNSORTED, {"workflow_id": workflow_id, "limit": limit})]


def sort_events(
    tx: Transaction, workflow_id: int, found: Iterable[tuple[PartitionEvent, Sequence[str]]], rules: str
) -> None:
    """Keep each event for its partitions; one without any is given up. The caller has locked the schedule."""
    sorted_ = list(found)
    rows = [
        {
            "workflow_id": workflow_id,
            "partition_key": partition,
            "event_id": event.event_id,
            "key": event.key,
            "rules": rules,
        }
        for event, partitions in sorted_
        for partition in partitions
    ]
    tx.write(TAKE, {"workflow_id": workflow_id, "event_ids": sorted({event.event_id for event, _ in sorted_})})
    if rows:
        tx.write_each(KEEP, rows)


def events_of_partitions(
    tx: Transaction, workflow_id: int, partitions: Sequence[str]
) -> dict[str, list[PartitionEvent]]:
    """Everything that has come for these partitions, oldest first."""
    found: dict[str, list[PartitionEvent]] = {}
    for partition, *event in tx.run(WAITING, {"workflow_id": workflow_id, "partitions": list(partitions)}):
        found.setdefault(partition, []).append(PartitionEvent(*event))
    return found


def give_partition(tx: Transaction, workflow_id: int, partition: str, event_ids: Iterable[int], run_id: int) -> None:
    """The run of a partition has the events that have come for it."""
    tx.write(START, {"workflow_id": workflow_id, "partition_key": partition})
    tx.write(ATTACH, {"run_id": run_id, "event_ids": sorted(set(event_ids))})


def forget_partitions(tx: Transaction, workflow_id: int, rules: str) -> None:
    """Forget what was sorted by other rules than these."""
    tx.write(FORGET_PARTITIONS, {"workflow_id": workflow_id, "rules": rules})


def pending_partitions(tx: Transaction, workflow_id: int, limit: int = 20) -> list[PendingPartition]:
    """Partitions for which something has come and whose runs have not started, oldest first."""
    found = tx.run(PENDING, {"workflow_id": workflow_id, "limit": limit})
    return [PendingPartition(partition, events) for partition, events, _ in found]
