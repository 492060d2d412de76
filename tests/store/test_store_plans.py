"""PostgreSQL keeps plans that it made while the tables were empty, so no statement may have a bad one to choose."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator

import pytest

import headrace.store
from headrace.store.run_graph import DOWNSTREAM_OF_ENDED
from headrace.store.sql import Sql

KINDS = ("SELECT", "INSERT", "UPDATE", "DELETE", "WITH")
GROWING = {"task", "run", "attempt", "event", "edge", "try", "value", "deadline"}
"""Tables that hold the whole history."""
PRESENT = {
    "ix_task_active",
    "ix_task_claimable",
    "ix_task_deferred",
    "ix_task_deferred_key",
    "ix_task_due",
    "ix_run_active",
    "ix_run_queued",
    "ix_attempt_running",
    "ix_attempt_timeout",
    "uq_attempt_active",
}
"""Indexes that hold nothing but what is going on now: reading one as a whole does not depend on the history."""
LAST = {"reading.LAST_EVENT"}
"""Statements that take one entry from the end of an index."""


def statements() -> dict[str, Sql]:
    """Every statement of the store."""
    return {
        f"{module.name}.{name}": statement
        for module in pkgutil.iter_modules(headrace.store.__path__)
        if not module.ispkg
        for name, statement in vars(importlib.import_module(f"headrace.store.{module.name}")).items()
        if isinstance(statement, Sql) and statement.postgres.split()[0] in KINDS
    }


def test_every_plan_made_on_empty_tables_goes_through_an_index(bench):
    if bench.store.database.dialect == "sqlite":
        pytest.skip("SQLite's plans do not depend on the sizes of tables")
    found = {name: list(whole_reads(plan(bench, statement))) for name, statement in statements().items()}
    assert len(found) > 200
    assert {name: reads for name, reads in found.items() if reads and name not in LAST} == {}


def test_what_is_downstream_is_found_by_what_has_ended_also_if_there_were_few_edges_once(bench):
    if bench.store.database.dialect == "sqlite":
        pytest.skip("SQLite's plans do not depend on the sizes of tables")
    with bench.store.begin() as tx:
        tx.connection.exec_driver_sql("ANALYZE")
    assert not [one for one in whole_reads(plan(bench, DOWNSTREAM_OF_ENDED)) if " of edge " in one]


def plan(bench, statement: Sql) -> dict:
    # The parameters are left open, as in a prepared statement.
    question = f"EXPLAIN (GENERIC_PLAN, FORMAT JSON) {statement.postgres}"
    with bench.store.begin() as tx:
        return tx.connection.connection.execute(question).fetchone()[0][0]["Plan"]


def whole_reads(node: dict, table: str | None = None) -> Iterator[str]:
    """Each place of the plan that reads all of a table or of an index."""
    table = node.get("Relation Name", table)
    kind, index = node["Node Type"], node.get("Index Name")
    is_scan = kind.endswith("Scan") and kind != "Bitmap Heap Scan"
    if is_scan and table in GROWING and "Index Cond" not in node and index not in PRESENT:
        yield f"{kind} of {table} by {index}"
    for child in node.get("Plans", ()):
        # An index does not say of which table it is; what a list of parameters is made from is not part of the scan.
        is_of_scan = kind == "Bitmap Heap Scan" and child["Parent Relationship"] == "Outer"
        yield from whole_reads(child, table if is_of_scan else None)
