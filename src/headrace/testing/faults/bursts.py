"""Very many schedules that are due at the same time."""

from __future__ import annotations

import time

from headrace.clock import from_micros
from headrace.store.sql import Sql
from headrace.testing.faults.arena import Arena
from headrace.testing.faults.checker import Kind, Wrong
from headrace.testing.faults.fault import Fault, Interrupted

MANY = 10_000
PER_FILE = 500
END_SECONDS = 600.0
_PER_SECOND = 80
"""How many workflows are expected to be saved in a second, so that all of them are there when they are due."""
_CODE = """
from datetime import UTC, datetime, timedelta
from airflow.providers.standard.operators.empty import EmptyOperator
from airflow.sdk import DAG

DUE = datetime.fromtimestamp({due}, UTC)
for number in range({first}, {last}):
    start = DUE - timedelta(minutes=1)
    with DAG(f"many_{{number}}", schedule=timedelta(minutes=1), catchup=True, start_date=start, end_date=start):
        EmptyOperator(task_id="nothing")
"""
STARTED = Sql(
    """
    SELECT run.started_at, run.run_after, run.state FROM run JOIN workflow ON workflow.id = run.workflow_id
    WHERE workflow.name LIKE 'many_%'
    """
)


def burst(count: int) -> Fault:
    """So many schedules, each with one run."""

    def inject(arena: Arena) -> Interrupted:
        due = int(time.time()) + 10 + count // _PER_SECOND
        for first in range(0, count, PER_FILE):
            code = _CODE.format(due=due, first=first, last=min(first + PER_FILE, count))
            (arena.cluster.project / f"many_{first}.py").write_text(code)
        arena.cluster.wait_until(lambda: _ended(arena) >= count, f"{count} runs have ended", END_SECONDS)
        with arena.cluster.store.read() as tx:
            rows = tx.run(STARTED)
        return Interrupted((), 0.0, [(from_micros(row[0]) - from_micros(row[1])).total_seconds() for row in rows])

    def check(arena: Arena) -> list[Wrong]:
        with arena.cluster.store.read() as tx:
            runs = len(tx.run(STARTED))
        kind: Kind = "lost" if runs < count else "duplicated"
        return [] if runs == count else [Wrong(kind, f"{count} schedules were due once each and started {runs} runs")]

    name = f"{count:,} schedules due in one minute"
    return Fault(name, "each starts its run once", inject, is_long=True, check=check)


def _ended(arena: Arena) -> int:
    with arena.cluster.store.read() as tx:
        return sum(row[2] in ("success", "failed") for row in tx.run(STARTED))
