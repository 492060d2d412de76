"""Backfills: runs for times in the past, with an order and a limit of their own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from headrace.store.active_runs import IS_QUEUED
from headrace.store.database import Transaction
from headrace.store.sql import Sql

_json = msgspec.json.Encoder()

INSERT = Sql(
    """
    INSERT INTO backfill (workflow_id, from_at, to_at, reprocess, is_backwards, max_active_runs, params, is_paused,
                          created_at)
    VALUES (:workflow_id, :from_at, :to_at, :reprocess, :is_backwards, :max_active_runs, :params, :no, :now)
    RETURNING id
    """
)
# Whoever inserts runs of the workflow at the same time may go on; whoever begins another backfill waits.
LOCK_WORKFLOW = Sql("SELECT id FROM workflow WHERE id = :id [[postgres: FOR NO KEY UPDATE]]")
_NEXT_WAITING = f"""
    SELECT coalesce(run.backfill_id, 0) FROM run
    WHERE run.workflow_id = {{workflow_id}} AND {IS_QUEUED} AND coalesce(run.backfill_id, 0) >"""
# From one backfill to the next, not from run to run: a paused one may have thousands of them. The ids are those of the
# runs: SQLite would compare the other ones, which are of a column, with the runs' without their index.
WAITING_BACKFILLS = f"""
    WITH RECURSIVE waiting (id) AS (
      SELECT ({_NEXT_WAITING} 0 ORDER BY coalesce(run.backfill_id, 0) LIMIT 1)
      UNION ALL
      SELECT ({_NEXT_WAITING} waiting.id ORDER BY coalesce(run.backfill_id, 0) LIMIT 1)
      FROM waiting WHERE waiting.id IS NOT NULL
    )
    SELECT waiting.id FROM waiting JOIN backfill ON backfill.id = waiting.id
    WHERE NOT backfill.is_paused ORDER BY waiting.id
    """
"""Those of `{workflow_id}` that have queued runs and are not paused, for statements that have other words for it."""
WAITING = Sql(WAITING_BACKFILLS.format(workflow_id=":workflow_id"))
# As a range: after an expression that is equal to something, SQLite would not see that the index has the order.
STARTABLE = Sql(
    f"""
    SELECT attempt.id FROM run JOIN attempt ON attempt.run_id = run.id
    WHERE run.workflow_id = :workflow_id AND {IS_QUEUED}
      AND coalesce(run.backfill_id, 0) BETWEEN :backfill_id AND :backfill_id
      AND attempt.state = 'queued' AND run.run_after <= :now
    ORDER BY coalesce(run.backfill_id, 0), coalesce(run.backfill_order, 0)
    LIMIT :limit [[postgres: FOR UPDATE OF attempt SKIP LOCKED]]
    """
)
RUNS_AT = Sql("SELECT unique_at, id, state FROM run WHERE workflow_id = :workflow_id AND unique_at IN :times[]")
ADOPT = Sql(
    """
    UPDATE run SET type = 'backfill', backfill_id = :backfill_id, backfill_order = :backfill_order, params = :params
    WHERE id = :run_id
    """
)
SET_PAUSED = Sql("UPDATE backfill SET is_paused = :is_paused WHERE id = :id")
CANCEL = Sql("UPDATE backfill SET canceled_at = :now, is_paused = :no WHERE id = :id")
END_IDLE_PAUSE = Sql(
    """
    UPDATE backfill SET is_paused = :no
    WHERE id = (SELECT run.backfill_id FROM run WHERE run.id = :run_id) AND is_paused
      AND (canceled_at IS NOT NULL OR NOT EXISTS (
        SELECT 1 FROM run WHERE run.backfill_id = backfill.id AND run.state IN ('queued', 'running')))
    """
)
QUEUED_ATTEMPTS = Sql(
    """
    SELECT attempt.id FROM run JOIN attempt ON attempt.run_id = run.id AND attempt.state = 'queued'
    WHERE run.backfill_id = :id AND run.state = 'queued' ORDER BY attempt.id
    """
)
_ROW = """
    SELECT backfill.id, backfill.workflow_id, workflow.name, project.name, backfill.from_at, backfill.to_at,
           backfill.reprocess, backfill.is_backwards, backfill.max_active_runs, backfill.params, backfill.is_paused,
           backfill.created_at, backfill.canceled_at,
           coalesce(sum(CASE WHEN run.state = 'queued' THEN 1 ELSE 0 END), 0),
           coalesce(sum(CASE WHEN run.state = 'running' THEN 1 ELSE 0 END), 0),
           coalesce(sum(CASE WHEN run.state = 'success' THEN 1 ELSE 0 END), 0),
           coalesce(sum(CASE WHEN run.state = 'failed' THEN 1 ELSE 0 END), 0),
           coalesce(sum(CASE WHEN run.state = 'canceled' THEN 1 ELSE 0 END), 0)
    FROM backfill JOIN workflow ON workflow.id = backfill.workflow_id JOIN project ON project.id = workflow.project_id
    LEFT JOIN run ON run.backfill_id = backfill.id
"""
_GROUP = "GROUP BY backfill.id, workflow.name, project.name"
GET = Sql(f"{_ROW} WHERE backfill.id = :id {_GROUP}")
LIST = Sql(
    f"""
    {_ROW} WHERE backfill.id < :before AND (:workflow_id = 0 OR backfill.workflow_id = :workflow_id)
    {_GROUP} ORDER BY backfill.id DESC LIMIT :limit
    """
)
ACTIVE = Sql(
    """
    SELECT max(backfill_id) FROM run
    WHERE workflow_id = :workflow_id AND state IN ('queued', 'running') AND backfill_id IS NOT NULL
    """
)
_ANY_ID = 2**62


class NewBackfill(NamedTuple):
    """A backfill to be created. Instants are microseconds since 1970."""

    workflow_id: int
    from_at: int
    to_at: int
    reprocess: str = "none"
    is_backwards: bool = False
    max_active_runs: int | None = None
    params: dict[str, Any] = {}


class BackfillRow(NamedTuple):
    """A backfill with how far its runs are."""

    id: int
    workflow_id: int
    workflow: str
    project: str
    from_at: int
    to_at: int
    reprocess: str
    is_backwards: bool
    max_active_runs: int | None
    params: str
    is_paused: bool
    created_at: int
    canceled_at: int | None
    queued: int
    running: int
    succeeded: int
    failed: int
    canceled: int

    @property
    def is_active(self) -> bool:
        return self.queued + self.running > 0

    @property
    def state(self) -> str:
        """`canceled`, `paused`, `running` or `ended`."""
        if self.canceled_at is not None:
            return "canceled"
        if not self.is_active:
            return "ended"
        return "paused" if self.is_paused else "running"


def insert_backfill(tx: Transaction, new: NewBackfill, now: int) -> int:
    parameters = {**new._asdict(), "params": _json.encode(new.params).decode(), "no": False, "now": now}
    ((backfill_id,),) = tx.run(INSERT, parameters)
    return int(backfill_id)


def lock_for_backfill(tx: Transaction, workflow_id: int) -> int | None:
    """Be the only one who begins a backfill of a workflow. Returns the one that is going on, if there is one."""
    tx.run(LOCK_WORKFLOW, {"id": workflow_id})
    ((backfill_id,),) = tx.run(ACTIVE, {"workflow_id": workflow_id})
    return None if backfill_id is None else int(backfill_id)


def runs_at(tx: Transaction, workflow_id: int, times: Sequence[int]) -> dict[int, tuple[int, str]]:
    """The id and the state of the run for each of these logical times that has one."""
    rows = tx.run(RUNS_AT, {"workflow_id": workflow_id, "times": list(times)})
    return {logical_at: (run_id, state) for logical_at, run_id, state in rows}


def adopt_run(tx: Transaction, run_id: int, backfill_id: int, order: int, params: dict[str, Any]) -> None:
    """Make a run that has ended one of a backfill; its next attempt obeys the backfill's limit and order."""
    document = _json.encode(params).decode()
    tx.change(ADOPT, {"run_id": run_id, "backfill_id": backfill_id, "backfill_order": order, "params": document})


def startable_backfills(tx: Transaction, workflow_id: int, now: int, limit: int) -> list[tuple[int, list[int]]]:
    """Queued attempts of each backfill of a workflow that is not paused, in its order, so many of each at most."""
    waiting = [row[0] for row in tx.run(WAITING, {"workflow_id": workflow_id})]
    parameters = {"workflow_id": workflow_id, "now": now, "limit": limit}
    asked = [tx.ask(STARTABLE, {**parameters, "backfill_id": backfill_id}) for backfill_id in waiting]
    lanes = [(backfill_id, [row[0] for row in reply.rows()]) for backfill_id, reply in zip(waiting, asked, strict=True)]
    return [(backfill_id, attempt_ids) for backfill_id, attempt_ids in lanes if attempt_ids]


def queued_attempts_of_backfill(tx: Transaction, backfill_id: int) -> list[int]:
    """Attempts that have not started."""
    return [row[0] for row in tx.run(QUEUED_ATTEMPTS, {"id": backfill_id})]


def set_backfill_paused(tx: Transaction, backfill_id: int, is_paused: bool) -> None:
    tx.change(SET_PAUSED, {"id": backfill_id, "is_paused": is_paused})
    tx.tell()


def mark_backfill_canceled(tx: Transaction, backfill_id: int, now: int) -> None:
    """It is not paused any more, either: a pause is for what is still to come."""
    tx.change(CANCEL, {"id": backfill_id, "now": now, "no": False})


def end_idle_pause(tx: Transaction, run_id: int) -> None:
    """Before a run is run again: a backfill that has ended, or was canceled, does not hold it back."""
    tx.write(END_IDLE_PAUSE, {"run_id": run_id, "no": False})


def get_backfill(tx: Transaction, backfill_id: int) -> BackfillRow | None:
    rows = tx.run(GET, {"id": backfill_id})
    return BackfillRow(*rows[0]) if rows else None


def list_backfills(
    tx: Transaction, workflow_id: int | None = None, before: int | None = None, limit: int = 50
) -> list[BackfillRow]:
    """Backfills, newest first, beginning before one."""
    parameters = {"workflow_id": workflow_id or 0, "before": before or _ANY_ID, "limit": limit}
    return [BackfillRow(*row) for row in tx.run(LIST, parameters)]
