"""Pausing a workflow and letting it go on."""

from __future__ import annotations

from headrace.store.database import Transaction
from headrace.store.sql import Sql

SET_PAUSED = Sql("UPDATE workflow SET is_paused = :is_paused WHERE id = :id")
# Never later than its next run is due: what is due then follows from the logical time.
UNPARK = Sql(
    """
    UPDATE schedule SET next_run_at = next_logical_at
    WHERE workflow_id = :id AND next_run_at IS NULL AND next_logical_at IS NOT NULL
    """
)


def set_paused(tx: Transaction, workflow_id: int, is_paused: bool) -> None:
    """Whether a workflow starts runs and tasks. What runs already goes on."""
    # The schedule before its workflow, as those lock them who start runs.
    if not is_paused:
        tx.change(UNPARK, {"id": workflow_id})
    tx.change(SET_PAUSED, {"id": workflow_id, "is_paused": is_paused})
    tx.should_notify = True
