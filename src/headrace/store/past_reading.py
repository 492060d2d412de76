"""The run before, as the rules that look at it see it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from headrace.clock import from_micros
from headrace.definition import Past
from headrace.state import PastRules, RunBefore, is_met
from headrace.store.database import Transaction
from headrace.store.definitions import Definitions
from headrace.store.news import News
from headrace.store.sql import Sql

PREVIOUS = Sql(
    """
    SELECT run.id, run.logical_at, attempt.id, attempt.root_id, attempt.workflow_version_id
    FROM attempt AS mine JOIN run AS own ON own.id = mine.run_id
    JOIN run ON run.workflow_id = own.workflow_id AND run.logical_at < own.logical_at
    JOIN attempt ON attempt.id = (SELECT max(newest.id) FROM attempt AS newest WHERE newest.run_id = run.id)
    WHERE mine.id = :attempt_id AND run.type <> :left_out
      AND NOT (attempt.root_id IS NULL AND attempt.state NOT IN ('queued', 'running'))
    ORDER BY run.logical_at DESC, run.id DESC LIMIT 1
    """
)
STATES = Sql("SELECT key, state FROM task WHERE attempt_id = :attempt_id AND key IN :keys[] AND NOT is_superseded")
HAS_EARLIER = Sql(
    """
    SELECT 1 FROM attempt AS mine JOIN run AS own ON own.id = mine.run_id
    JOIN run ON run.workflow_id = own.workflow_id AND run.logical_at < own.logical_at
    JOIN attempt ON attempt.run_id = run.id
    JOIN task ON task.attempt_id = attempt.id AND task.key = :key AND NOT task.is_superseded
    WHERE mine.id = :attempt_id LIMIT 1
    """
)


INSERT_NUDGES = Sql(
    "INSERT INTO nudge (attempt_id, key) SELECT attempt_id, key FROM ROWS(:rows)",
    rows=(("attempt_id", "bigint"), ("key", "text")),
)


def insert_nudges(tx: Transaction, nudges: Iterable[tuple[int, str]]) -> None:
    """Have tasks with these keys, of these attempts and of the runs after them, look again after the commit."""
    rows = [{"attempt_id": attempt_id, "key": key} for attempt_id, key in sorted(nudges)]
    tx.write_each(INSERT_NUDGES, rows)
    tx.tell(News.PLANS)


class Waiting(NamedTuple):
    """A task that an earlier run holds up, for people."""

    past: Past
    before: RunBefore


def past_of(tx: Transaction, attempt_id: int, version_id: int, key: str) -> Waiting | None:
    """What a task waits for in an earlier run. None: nothing."""
    rules: PastRules | None = tx.shared(Definitions).version(tx, version_id).past
    if rules is None or key not in rules.of:
        return None
    before = run_before(tx, attempt_id, rules, key)
    return None if before is None or is_met(rules.of[key], before) else Waiting(rules.of[key], before)


def run_before(tx: Transaction, attempt_id: int, rules: PastRules, key: str) -> RunBefore | None:
    """The run before the one of this attempt, as the rule of a task sees it."""
    left_out = "manual" if rules.of[key].skips_manual else ""
    rows = tx.run(PREVIOUS, {"attempt_id": attempt_id, "left_out": left_out})
    if not rows:
        return None
    run_id, logical_at, before_id, root_id, version_id = rows[0]
    downstream = rules.downstream.get(key, ())
    states = tx.run(STATES, {"attempt_id": before_id, "keys": [key, *downstream]})
    own = [state for of, state in states if of == key]
    if root_id is None and key in tx.shared(Definitions).version(tx, version_id).nodes:
        own = ["none"]  # the run has not started, so its tasks are not there yet
    return RunBefore(
        run_id=run_id,
        logical_time=from_micros(logical_at),
        states=own,
        downstream=[state for of, state in states if of != key],
        has_earlier=bool(own) or bool(tx.run(HAS_EARLIER, {"attempt_id": attempt_id, "key": key})),
    )
