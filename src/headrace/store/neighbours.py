"""The run before another one, by logical time."""

from __future__ import annotations

from typing import NamedTuple

from headrace.store.database import Transaction
from headrace.store.sql import Sql

PREVIOUS = Sql(
    """
    SELECT run.id, run.key, run.type, run.state, run.logical_at, run.interval_start, run.interval_end, run.started_at,
           run.ended_at
    FROM run
    WHERE run.workflow_id = (SELECT own.workflow_id FROM run AS own WHERE own.id = :run_id)
      AND run.logical_at < (SELECT own.logical_at FROM run AS own WHERE own.id = :run_id)
      AND (:state = '' OR run.state = :state)
    ORDER BY run.logical_at DESC LIMIT 1
    """
)


class Neighbour(NamedTuple):
    """Another run of the same workflow."""

    run_id: int
    run_key: str
    run_type: str
    state: str
    logical_at: int
    interval_start: int | None
    interval_end: int | None
    started_at: int | None
    ended_at: int | None


def previous_run(tx: Transaction, run_id: int, state: str = "") -> Neighbour | None:
    """The run with the greatest logical time before this one's, in any state or in one; none if it has no time."""
    rows = tx.run(PREVIOUS, {"run_id": run_id, "state": state})
    return Neighbour(*rows[0]) if rows else None
