"""Each wait ends once, and triggerers are told of what they have to run, or to run no more."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from headrace.state import Actor, State
from headrace.store import Database, News
from headrace.store.sql import Sql
from headrace.testing.invariants import SeenEvent
from headrace.testing.recounting import Violation
from headrace.testing.simulated_triggers import Told

TRIGGERS = Sql("SELECT id, task_id, agent_id, is_given_up FROM trigger ORDER BY id")


class _Row(NamedTuple):
    id: int
    task_id: int | None
    agent_id: int | None
    is_given_up: bool


class TriggerCheck:
    """Called after each commit.

    Left to the poll by design is what a triggerer holds that is silent: nothing is committed when its lease runs out.
    """

    def __init__(self, database: Database, told: Told) -> None:
        self._database = database
        self._told = told
        self._rows: dict[int, _Row] = {}
        self._used: set[int] = set()

    def check(self, events: Sequence[SeenEvent], news: News, own_id: int, who: str) -> None:
        """Raise a Violation if something is wrong. `own_id`: by which the store knows the triggerer that committed."""
        with self._database.read() as tx:
            rows = {row[0]: _Row(row[0], row[1], row[2], bool(row[3])) for row in tx.run(TRIGGERS)}
        before, self._rows = self._rows, rows
        if before == rows:
            return
        new = [row for row in rows.values() if row.id not in before]
        gone = [row for row in before.values() if row.id not in rows]
        given_up = [row for row in before.values() if row.id in rows and rows[row.id].is_given_up > row.is_given_up]
        left = [event for event in events if event.before == State.DEFERRED]
        told = {event.task_id for event in left if event.actor == Actor.TRIGGERER}
        resumed = {event.task_id for event in left if event.after == State.SCHEDULED}
        self._expect_new_ids(new)
        for row in gone:
            self._expect_reason(row, told, resumed)
        over = [row for row in (*gone, *given_up) if not row.is_given_up]
        others = [row for row in over if row.agent_id not in (None, own_id)]
        if (others or any(row.agent_id is None for row in new)) and News.TRIGGERS not in news:
            raise Violation(f"{who} told no triggerer of triggers to begin or to end: {new}, {others}")

    def _expect_new_ids(self, new: Sequence[_Row]) -> None:
        for row in new:
            if row.id in self._used:
                raise Violation(f"trigger {row.id} had ended, and is there again")
            self._used.add(row.id)

    def _expect_reason(self, row: _Row, told: Collection[int | None], resumed: Collection[int | None]) -> None:
        """A trigger that a task waited for is gone when it has fired, its task goes on, or its work was ended."""
        if row.task_id in told and not row.is_given_up and row.id not in self._told.fired:
            raise Violation(f"task {row.task_id} waits no longer for trigger {row.id}, which has told nothing")
        has_ended = row.task_id in told or row.task_id in resumed
        if row.task_id is not None and (row.is_given_up or not has_ended) and row.id not in self._told.killed:
            raise Violation(f"trigger {row.id} was given up, and is gone before its work was ended")
