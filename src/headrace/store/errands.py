"""Errands: written with the change that caused them, taken by agents under their lease, run at least once."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

import msgspec

from headrace.handoff import Errand, TaskError, TaskResult
from headrace.state import Attempt
from headrace.store.database import Reply, Transaction
from headrace.store.news import News
from headrace.store.sql import Sql

_json = msgspec.json.Encoder()

MAX_TRIES = 3
_WAIT_SECONDS = (10, 60)
"""Before the second and the third try."""

INSERT = Sql(
    """
    INSERT INTO errand (attempt_id, task_id, try_number, kind, payload, queue, state, fence, tries, due_at, created_at)
    SELECT attempt_id, task_id, try_number, kind, payload, queue, 'waiting', 0, 0, due_at, created_at FROM ROWS(:rows)
    """,
    rows=(
        ("attempt_id", "bigint"), ("task_id", "bigint"), ("try_number", "integer"), ("kind", "text"),
        ("payload", "text"), ("queue", "text"), ("due_at", "bigint"), ("created_at", "bigint"),
    ),
)  # fmt: skip
# The newest task that ended in a way which explains how the run ended.
SUBJECT = Sql(
    """
    SELECT id, try_number FROM task
    WHERE attempt_id = :attempt_id AND NOT is_superseded AND kind = 'task' AND parent_id IS NOT NULL
      AND state IN :states[]
    ORDER BY ended_at DESC, id DESC LIMIT 1
    """
)
_CANDIDATES = """
    SELECT id FROM errand WHERE state = 'waiting' AND (due_at IS NULL OR due_at <= :now) AND {scope}
    ORDER BY id LIMIT :limit [[postgres: FOR UPDATE SKIP LOCKED]]
    """
CANDIDATES = Sql(_CANDIDATES.format(scope="queue IN :queues[]"))
CANDIDATES_OF_ATTEMPTS = Sql(_CANDIDATES.format(scope="attempt_id IN :attempts[]"))
# An agent that was given up and does not know it yet has no lease under which it could take anything.
TAKE = Sql(
    """
    UPDATE errand SET state = 'running', fence = fence + 1, tries = tries + 1, agent_id = :agent_id, started_at = :now
    WHERE id IN :ids[] AND state = 'waiting'
      AND EXISTS (SELECT 1 FROM agent WHERE agent.id = :agent_id AND NOT agent.is_lost)
    RETURNING id, attempt_id, task_id, try_number, kind, payload, fence, tries
    """
)
END = Sql(
    """
    UPDATE errand SET state = :state, agent_id = NULL, tries = tries - :given_back, due_at = :due_at,
           ended_at = :ended_at, error = :error, log = coalesce(:log, log)
    WHERE id = :id AND fence = :fence AND state = 'running'
    """
)
TRIES = Sql("SELECT tries FROM errand WHERE id = :id AND fence = :fence AND state = 'running'")
HELD = Sql("SELECT id, fence, attempt_id FROM errand WHERE agent_id = :agent_id AND state = 'running'")
IS_LOST = Sql("SELECT 1 FROM errand JOIN agent ON agent.id = errand.agent_id WHERE agent.is_lost LIMIT 1")
LOST = Sql(
    """
    SELECT errand.id, errand.fence, agent.name FROM errand JOIN agent ON agent.id = errand.agent_id
    WHERE agent.is_lost ORDER BY errand.id LIMIT :limit [[postgres: FOR UPDATE OF errand SKIP LOCKED]]
    """
)
OPEN = Sql("SELECT count(*) FROM errand WHERE attempt_id = :attempt_id AND state IN ('waiting', 'running')")

_EXPLAINING = {"success": ("success",), "timed_out": ("skipped", "canceled", "failed"), "failed": ("failed",)}


class NewErrand(NamedTuple):
    """An errand to be written."""

    attempt_id: int
    errand: Errand
    task_id: int | None = None
    try_number: int = 0
    queue: str = "default"
    """Which agents can run it: those that have the user's code."""
    due_at: int | None = None


class ClaimedErrand(NamedTuple):
    """An errand that an agent took."""

    id: int
    attempt_id: int
    task_id: int | None
    try_number: int
    errand: Errand
    fence: int
    tries: int


def send_errands(tx: Transaction, errands: Sequence[NewErrand], now: int) -> None:
    """Have errands run once this transaction is committed."""
    rows = [
        {
            **new._asdict(),
            "kind": new.errand.kind,
            "payload": _json.encode(new.errand.payload).decode(),
            "created_at": now,
        }
        for new in errands
    ]
    if rows:
        tx.write_each(INSERT, rows)
        tx.tell(News.WORK)


def explained(tx: Transaction, attempt: Attempt, new: NewErrand) -> NewErrand:
    """An errand about a run, with the task that explains best how the run ended."""
    states = _EXPLAINING.get(attempt.reason or attempt.state, ())
    for task_id, try_number in tx.run(SUBJECT, {"attempt_id": attempt.id, "states": list(states)}):
        return new._replace(task_id=task_id, try_number=try_number)
    return new


def ask_for_errands(
    tx: Transaction, queues: Sequence[str], limit: int, now: int, attempts: Collection[int] | None = None
) -> Reply:
    """Ask for up to `limit` errands, of these queues or of certain attempts, which nobody else can take then."""
    parameters = {"now": now, "queues": list(queues), "limit": limit, "attempts": sorted(attempts or ())}
    return tx.ask(CANDIDATES if attempts is None else CANDIDATES_OF_ATTEMPTS, parameters)


def claim_errands(tx: Transaction, agent_id: int, asked: Reply, now: int) -> list[ClaimedErrand]:
    """Take those errands under the agent's lease."""
    rows = asked.rows()
    if not rows:
        return []
    taken = tx.run(TAKE, {"ids": [row[0] for row in rows], "agent_id": agent_id, "now": now})
    return [
        ClaimedErrand(
            errand, attempt, task, number, Errand(kind=kind, payload=msgspec.json.decode(payload)), fence, tries
        )
        for errand, attempt, task, number, kind, payload, fence, tries in sorted(taken)
    ]


def end_errand(tx: Transaction, errand_id: int, result: TaskResult, log: str | None, now: int) -> bool:
    """Record how one execution ended; what failed for no fault of the user's code is tried again. False: stale."""
    rows = tx.run(TRIES, {"id": errand_id, "fence": result.fence})
    if not rows:
        return False
    tries, error = rows[0][0], None if result.error is None else _json.encode(result.error).decode()
    values = {"id": errand_id, "fence": result.fence, "given_back": 0, "error": error, "log": log, "due_at": None}
    if result.outcome == "stopped":
        values |= {"state": "waiting", "ended_at": None, "given_back": 1}
    elif result.outcome == "failed" and result.is_retryable and tries < MAX_TRIES:
        values |= {"state": "waiting", "ended_at": None, "due_at": now + _WAIT_SECONDS[tries - 1] * 1_000_000}
    else:
        values |= {"state": "failed" if result.outcome == "failed" else "done", "ended_at": now}
        tx.tell(News.ENDS)
    return tx.change(END, values) == 1


def held_errands(tx: Transaction, agent_id: int) -> list[tuple[int, int, int]]:
    """(id, fence, attempt id) of the errands that the store says an agent runs."""
    return [(row[0], row[1], row[2]) for row in tx.run(HELD, {"agent_id": agent_id})]


def has_lost_errands(tx: Transaction) -> bool:
    """Whether a process that is gone still holds errands."""
    return bool(tx.run(IS_LOST))


def rescue_errands(tx: Transaction, now: int, limit: int = 200) -> int:
    """Take errands from agents that are gone. Returns how many."""
    rows = tx.run(LOST, {"limit": limit})
    for errand_id, fence, agent in rows:
        error = TaskError(type="LeaseLost", message=f"lost: agent `{agent}` is gone")
        end_errand(tx, errand_id, TaskResult(task_id=0, fence=fence, outcome="failed", error=error), None, now)
    if rows:
        tx.tell()
    return len(rows)


def count_open_errands(tx: Transaction, attempt_id: int) -> int:
    """How much is still to be done on behalf of an attempt."""
    ((count,),) = tx.run(OPEN, {"attempt_id": attempt_id})
    return int(count)
