"""What waits in the store, counted at a price that does not depend on how much has piled up or ever happened.

Numbers stop at `MOST`: whoever has more waiting than that knows enough.
"""

from __future__ import annotations

from typing import NamedTuple

from headrace.store.database import Transaction
from headrace.store.sql import Sql

MOST = 10_000
_GROWING = ("attempt", "edge", "errand", "event", "run", "task", "try", "value")
"""Tables that hold the history."""

READY = Sql(
    """
    SELECT ready.pool, ready.queue, count(*), min(ready.scheduled_at)
    FROM (SELECT pool, queue, scheduled_at FROM task WHERE state = 'scheduled' LIMIT :most) AS ready
    GROUP BY ready.pool, ready.queue ORDER BY ready.pool, ready.queue
    """
)
HELD = Sql(
    """
    SELECT pool, queue, count(*) FROM task WHERE state IN ('queued', 'running', 'restarting')
    GROUP BY pool, queue ORDER BY pool, queue
    """
)
ACTIVE_RUNS = Sql(
    """
    SELECT active.state, count(*)
    FROM (SELECT state FROM run WHERE state IN ('queued', 'running') LIMIT :most) AS active GROUP BY active.state
    """
)
DUE_SCHEDULES = Sql(
    """
    SELECT count(*), min(due.next_run_at)
    FROM (SELECT next_run_at FROM schedule WHERE next_run_at <= :now ORDER BY next_run_at LIMIT :most) AS due
    """
)
OLDEST_TIMER = Sql("SELECT due_at FROM task WHERE due_at <= :now ORDER BY due_at LIMIT 1")
# A triggerer that is stopping runs none of those that it still holds: they only clean up.
WAITING_TRIGGERS = Sql(
    """
    SELECT count(*) FROM (
      SELECT id FROM trigger WHERE agent_id IS NULL
      UNION ALL SELECT id FROM trigger WHERE agent_id IN (SELECT id FROM agent WHERE stopping_at IS NOT NULL)
      LIMIT :most
    ) AS waiting
    """
)
WAITING_ERRANDS = Sql(
    """
    SELECT count(*) FROM (
      SELECT id FROM errand WHERE state = 'waiting' AND (due_at IS NULL OR due_at <= :now) LIMIT :most
    ) AS waiting
    """
)
BROKEN_FILES = Sql("SELECT count(*) FROM (SELECT id FROM source_error LIMIT :most) AS broken")
BYTES = Sql(
    """
    [[sqlite: SELECT page_count * page_size FROM pragma_page_count, pragma_page_size]]
    [[postgres: SELECT pg_database_size(current_database())]]
    """
)
# PostgreSQL keeps an estimate. SQLite does not; its row ids are given in order and rows are deleted from the old end.
ROWS = Sql(
    "[[sqlite: "
    + " UNION ALL ".join(
        f"SELECT '{name}', (SELECT max(rowid) FROM {name}) - (SELECT min(rowid) FROM {name}) + 1" for name in _GROWING
    )
    + "]][[postgres: "
    "SELECT relname, reltuples FROM pg_class WHERE relkind = 'r' AND relname IN :tables[]"
    " AND relnamespace = CAST(current_schema() AS regnamespace) ORDER BY relname]]"
)


class Waiting(NamedTuple):
    """Tasks of one pool and queue that could run."""

    pool: str
    queue: str
    number: int
    since: int | None
    """When the oldest of them became ready."""


class Due(NamedTuple):
    """Schedules that nobody has served."""

    number: int
    since: int | None


class Backlog(NamedTuple):
    """Everything that waits. Instants are microseconds since 1970."""

    ready: list[Waiting]
    held: list[tuple[str, str, int]]
    """Pool, queue and how many tasks agents hold of them."""
    runs: dict[str, int]
    """Queued and running."""
    schedules: Due
    timer_due_at: int | None
    """The oldest timer of a task that is due."""
    triggers: int
    errands: int
    broken_files: int


class Size(NamedTuple):
    bytes: int
    rows: dict[str, int]
    """About how many, by table; those that the database knows nothing about are left out."""


def read_backlog(tx: Transaction, now: int, most: int = MOST) -> Backlog:
    """What waits now."""
    bound = {"most": most}
    timed = {"now": now, "most": most}
    timer = tx.run(OLDEST_TIMER, {"now": now})
    ((number, since),) = tx.run(DUE_SCHEDULES, timed)
    return Backlog(
        ready=[Waiting(*row) for row in tx.run(READY, bound)],
        held=[(row[0], row[1], row[2]) for row in tx.run(HELD)],
        runs={"queued": 0, "running": 0, **{row[0]: row[1] for row in tx.run(ACTIVE_RUNS, bound)}},
        schedules=Due(number, since),
        timer_due_at=timer[0][0] if timer else None,
        triggers=_count(tx, WAITING_TRIGGERS, bound),
        errands=_count(tx, WAITING_ERRANDS, timed),
        broken_files=_count(tx, BROKEN_FILES, bound),
    )


def store_size(tx: Transaction) -> Size:
    """How large the store has become."""
    ((size,),) = tx.run(BYTES)
    rows = tx.run(ROWS, {"tables": list(_GROWING)})
    return Size(int(size), {name: int(count or 0) for name, count in rows if count is None or count >= 0})


def _count(tx: Transaction, statement: Sql, parameters: dict[str, int]) -> int:
    ((count,),) = tx.run(statement, parameters)
    return int(count)
