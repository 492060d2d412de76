"""What tasks wait for in the run before, and waking them when it happens.

Two transactions may miss each other: one ends a task, the other finds that task unfinished and lets the next run wait
for it. So both leave a *nudge*, which is read after they are committed and has those look again who may wait: whichever
commits last, its nudge sees what both did. A nudge is an inserted row, so that nobody locks the runs of others.
"""

from __future__ import annotations

from typing import NamedTuple

from headrace.state import Advance
from headrace.store.database import Transaction
from headrace.store.definitions import Definitions
from headrace.store.results import Committed, settle_and_flush, tell_of
from headrace.store.run_graph import RunGraph
from headrace.store.sql import Sql

HAS_NUDGES = Sql("SELECT 1 FROM nudge LIMIT 1")
NUDGES = Sql("SELECT id, attempt_id, key FROM nudge ORDER BY id LIMIT :limit [[postgres: FOR UPDATE SKIP LOCKED]]")
DELETE_NUDGES = Sql("DELETE FROM nudge WHERE id IN :ids[]")
# The run itself, and those after it that are going on.
FOLLOWERS = Sql(
    """
    SELECT attempt.id, run.logical_at, run.type, own.logical_at
    FROM attempt AS nudged JOIN run AS own ON own.id = nudged.run_id
    JOIN run ON run.workflow_id = own.workflow_id AND run.state IN ('queued', 'running') AND run.state = 'running'
    JOIN attempt ON attempt.run_id = run.id AND attempt.state = 'running'
    WHERE nudged.id = :attempt_id AND run.logical_at >= own.logical_at
    ORDER BY run.logical_at, run.id
    """
)


class Followed(NamedTuple):
    """What became of nudges."""

    found: int
    committed: Committed | None


def has_nudges(tx: Transaction) -> bool:
    """Whether somebody may wait for something that has happened in an earlier run."""
    return bool(tx.run(HAS_NUDGES))


def follow_past(tx: Transaction, now: int, limit: int = 200) -> Followed:
    """Have tasks look again that may have waited for an earlier run."""
    rows = tx.run(NUDGES, {"limit": limit})
    if not rows:
        return Followed(0, None)
    tx.change(DELETE_NUDGES, {"ids": [row[0] for row in rows]})
    keys: dict[int, set[str]] = {}
    for _, attempt_id, key in rows:
        for follower in _followers(tx, attempt_id):
            keys.setdefault(follower, set()).add(key)
    if not keys:
        return Followed(len(rows), None)
    graph = RunGraph(tx, now, is_following=True)
    graph.lock(keys)
    advance = Advance(graph)
    for attempt_id in sorted(keys):
        attempt = graph.attempt(attempt_id)
        rules = tx.shared(Definitions).version(tx, attempt.workflow_version_id).past
        affected = {one for key in keys[attempt_id] for one in rules.affected_by(key)} if rules is not None else ()
        if attempt.state == "running" and affected:
            advance.look_again(graph.by_key(attempt_id, sorted(affected)))
    committed = settle_and_flush(advance, graph)
    tell_of(tx, graph, [committed])
    return Followed(len(rows), committed)


def _followers(tx: Transaction, attempt_id: int) -> list[int]:
    """The run itself and those for which it may be the run before: the next one, and the next that is not manual."""
    rows = tx.run(FOLLOWERS, {"attempt_id": attempt_id})
    found = [row[0] for row in rows if row[1] == row[3]]
    later = [row for row in rows if row[1] > row[3]]
    for candidates in (later, [row for row in later if row[2] != "manual"]):
        found += [row[0] for row in candidates if row[1] == candidates[0][1]]
    return found
