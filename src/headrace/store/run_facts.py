"""What tasks are told of their run, as the store has it; nobody changes it while the attempt lasts."""

from __future__ import annotations

from typing import NamedTuple

# `unique_at` has an index together with the workflow; workflows that allow several runs for a time have no such order.
FACTS = """
    run.id, run.key, run.type, run.logical_at, run.interval_start, run.interval_end, run.run_after, run.params,
    run.partition_key, run.partition_at,
    CASE WHEN run.type IN ('scheduled', 'backfill') THEN
      (SELECT earlier.unique_at FROM run AS earlier
       WHERE earlier.workflow_id = run.workflow_id AND earlier.unique_at < run.logical_at
         AND earlier.type IN ('scheduled', 'backfill')
       ORDER BY earlier.unique_at DESC LIMIT 1) END,
    attempt.plan, attempt.number, attempt.name, attempt.created_at, attempt.started_at, attempt.workflow_version_id,
    (SELECT workflow.name FROM workflow WHERE workflow.id = run.workflow_id)
    """
"""The fields of `RunFacts`, of an attempt and its run."""


class RunFacts(NamedTuple):
    """Of one attempt. Times are in microseconds."""

    run_id: int
    key: str
    type: str
    logical_at: int | None
    interval_start: int | None
    interval_end: int | None
    run_after: int
    params: str
    partition_key: str | None
    partition_at: int | None
    previous_at: int | None
    """The logical time of the run before, if both come from the schedule."""
    plan: str | None
    number: int
    name: str
    created_at: int
    started_at: int | None
    version_id: int
    workflow: str
