"""Whatever loops and commands ask of a store with a long history, they ask it through indexes."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner
from store_bench import Bench
from store_history import with_history
from test_store_costs import agent_on, explained, run_to_the_end
from test_store_plans import GROWING, KINDS, PRESENT

from headrace.cli.main import headrace
from headrace.clock import SystemClock
from headrace.scheduler import (
    AgeKeeper,
    DeadlineKeeper,
    PastFollower,
    Pruner,
    Rescuer,
    Reviver,
    RunActivator,
    RunStarter,
    Waker,
    WatcherKeeper,
)
from headrace.store import Transaction
from headrace.store.sql import Sql
from headrace.store.triggers import claim_triggers, has_free_triggers, held_triggers, let_go_of_triggers

HELD = PRESENT | {"ix_task_agent"}
"""Only tasks that an agent holds are in it."""
COMMANDS = (
    ("status",),
    ("runs",),
    ("runs", "old3"),
    ("tasks", "1"),
    ("why", "1"),
    ("workflows",),
    ("schedules",),
    ("pools",),
    ("errors",),
    ("next", "old3"),
    ("attempts",),
    ("sessions",),
)
LAST = re.compile(r"ORDER BY .*\bid( DESC)? LIMIT", re.DOTALL)
"""A page, or one row, from the end of an index that is in the order of what is wanted."""


class Asked:
    """Every statement that was asked, once each, with the parameters of the first time."""

    def __init__(self, monkeypatch):
        self.statements: dict[Sql, tuple[str, object]] = {}
        for way in ("ask", "ask_each"):
            monkeypatch.setattr(Transaction, way, self._noting(way, getattr(Transaction, way)))

    def _noting(self, way, original):
        def ask(tx, statement, parameters=None):
            if statement.postgres.split()[0] in KINDS:
                self.statements.setdefault(statement, (way, parameters))
            return original(tx, statement, parameters)

        return ask


def test_nothing_reads_a_table_of_the_history_as_a_whole(bench, tmp_path, monkeypatch):
    with_history(bench, 20_000)
    assert whole_reads_of_everybody(bench, tmp_path, monkeypatch) == {}


@pytest.mark.long
def test_nothing_reads_a_million_rows_as_a_whole(bench, tmp_path, monkeypatch):
    with_history(bench, 1_000_000)
    assert whole_reads_of_everybody(bench, tmp_path, monkeypatch) == {}


def whole_reads_of_everybody(bench: Bench, folder: Path, monkeypatch) -> dict[str, list[str]]:
    with monkeypatch.context() as patched:
        asked = Asked(patched)
        have_everybody_work(bench, folder)
    assert len(asked.statements) > 80
    plans = {one.postgres: list(whole_reads(bench, one, *asked.statements[one])) for one in asked.statements}
    return {text: reads for text, reads in plans.items() if reads}


def have_everybody_work(bench: Bench, folder: Path) -> None:
    store, now = bench.store, SystemClock().now()
    run_to_the_end(agent_on(bench, folder, slots=8))
    for kind in (DeadlineKeeper, PastFollower, Rescuer, Reviver, RunActivator, RunStarter, Waker, WatcherKeeper):
        kind(store).tick(now)
    AgeKeeper(store, run_seconds=60.0, task_seconds=60.0).tick(now)
    for words in COMMANDS:
        done = CliRunner().invoke(headrace, [*words, "--store", bench.url], catch_exceptions=False)
        assert done.exit_code == 0, (words, done.output)
    Pruner(store, retention_days=1).tick(now)
    have_triggers_looked_for(bench)


def have_triggers_looked_for(bench: Bench) -> None:
    """As a triggerer does."""
    with bench.store.begin() as tx:
        assert not has_free_triggers(tx, bench.now)
        assert claim_triggers(tx, 1, 10, bench.now) == []
        assert held_triggers(tx, 1) == {}
        assert let_go_of_triggers(tx, 1) == 0


def whole_reads(bench: Bench, statement: Sql, way: str, parameters) -> Iterator[str]:
    """Each table that the plan of a statement reads as a whole: `Seq Scan of task`."""
    with bench.store.read() as tx:
        replies = [getattr(tx, way)(form, parameters) for form in explained(statement, "(FORMAT JSON)")]
        rows = [row for reply in replies for row in reply.rows()]
    if bench.store.database.dialect == "sqlite":
        for row in rows:
            found = re.fullmatch(r"SCAN (\w+)( USING (COVERING )?INDEX (\w+))?", row[3])
            if (
                found
                and found[1] in GROWING
                and found[4] not in HELD
                and not (found[4] and LAST.search(statement.sqlite))
            ):
                yield f"SCAN of {found[1]}"
    else:
        (document,) = rows[0]
        plan = json.loads(document) if isinstance(document, str) else document
        yield from _scans(plan[0]["Plan"], bool(LAST.search(statement.postgres)))


def _scans(node: dict, is_page: bool) -> Iterator[str]:
    is_whole = node["Node Type"] == "Seq Scan" or (
        node["Node Type"].startswith("Index")
        and "Index Cond" not in node
        and node["Index Name"] not in HELD
        and not is_page
    )
    if is_whole and node.get("Relation Name") in GROWING:
        yield f"{node['Node Type']} of {node['Relation Name']}"
    for child in node.get("Plans", ()):
        yield from _scans(child, is_page)
