"""Pausing a workflow and letting it go on."""

from __future__ import annotations

import logging
from functools import partial

from headrace.store.database import Transaction
from headrace.store.sql import Sql

_log = logging.getLogger("headrace.store")

SET_PAUSED = Sql("UPDATE workflow SET is_paused = :is_paused WHERE id = :id")
# Never later than its next run is due: what is due then follows from the logical time. One that waits for events is
# looked at once, as some may have come before the pause.
UNPARK = Sql(
    """
    UPDATE schedule SET next_run_at = coalesce(next_logical_at, 0)
    WHERE workflow_id = :id AND next_run_at IS NULL AND slots_wanted_at IS NULL AND disabled_at IS NULL
    """
)
# Times that only user code knows are asked for again.
ASK_AGAIN = Sql("UPDATE schedule SET slots_wanted_at = 0 WHERE workflow_id = :id AND slots_wanted_at IS NOT NULL")
NEWEST_STATES = Sql(
    """
    SELECT state FROM run WHERE workflow_id = :id AND logical_at IS NOT NULL ORDER BY logical_at DESC LIMIT :limit
    """
)


def set_paused(tx: Transaction, workflow_id: int, is_paused: bool) -> None:
    """Whether a workflow starts runs and tasks. What runs already goes on."""
    # The schedule before its workflow, as those lock them who start runs.
    if not is_paused:
        tx.change(UNPARK, {"id": workflow_id})
        tx.change(ASK_AGAIN, {"id": workflow_id})
    tx.change(SET_PAUSED, {"id": workflow_id, "is_paused": is_paused})
    tx.tell()


def pause_after_failures(tx: Transaction, workflow_id: int, limit: int) -> None:
    """Pause a workflow if its newest runs, by logical time and as many as `limit` says, have all failed."""
    states = [row[0] for row in tx.run(NEWEST_STATES, {"id": workflow_id, "limit": limit})]
    if states == ["failed"] * limit:
        set_paused(tx, workflow_id, True)
        told = "workflow %d is paused: %d runs in a row failed"
        tx.after_commit.append(partial(_log.warning, told, workflow_id, limit))
