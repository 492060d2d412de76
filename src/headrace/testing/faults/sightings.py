"""What shows, from outside, that a fault has really come about."""

from __future__ import annotations

import os
from pathlib import Path

from headrace.store import Store
from headrace.store.sql import Sql
from headrace.testing.faults.members import Member

NEWEST_LEASE = Sql("SELECT is_lost FROM agent WHERE pid = :pid ORDER BY id DESC LIMIT 1")
TRIGGERS = Sql(
    """
    SELECT count(*) FROM trigger JOIN agent ON agent.id = trigger.agent_id
    WHERE agent.pid = :pid AND NOT trigger.is_given_up
    """
)
OLD_RUNS = Sql(
    """
    SELECT count(*) FROM workflow JOIN attempt ON attempt.workflow_id = workflow.id
    WHERE workflow.name = :name AND attempt.state = 'running'
      AND attempt.workflow_version_id <> workflow.current_version_id
    """
)
VERSIONS = Sql(
    """
    SELECT count(*) FROM workflow JOIN workflow_version ON workflow_version.workflow_id = workflow.id
    WHERE workflow.name = :name
    """
)
COUNT_FILE = "happened"


def is_given_up(store: Store, member: Member) -> bool:
    """Whether the others take it for gone."""
    with store.read() as tx:
        leases = tx.run(NEWEST_LEASE, {"pid": member.pid})
    return bool(leases and leases[0][0])


def runs_triggers(store: Store, member: Member) -> bool:
    with store.read() as tx:
        return bool(tx.run(TRIGGERS, {"pid": member.pid})[0][0])


def has_old_runs(store: Store, workflow: str) -> bool:
    """Whether something goes on that began before the workflow's newest version was saved."""
    with store.read() as tx:
        return bool(tx.run(OLD_RUNS, {"name": workflow})[0][0])


def count_versions(store: Store, workflow: str) -> int:
    """How many definitions of a workflow are saved."""
    with store.read() as tx:
        return int(tx.run(VERSIONS, {"name": workflow})[0][0])


def note_that_it_happened(folder: Path) -> None:
    """Counts what a process does to itself: one byte each time."""
    descriptor = os.open(folder / COUNT_FILE, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        os.write(descriptor, b".")
    finally:
        os.close(descriptor)


def times_happened(folder: Path) -> int:
    try:
        return (folder / COUNT_FILE).stat().st_size
    except FileNotFoundError:
        return 0
