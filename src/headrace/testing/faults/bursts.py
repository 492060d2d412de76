"""Very many schedules that are due at the same time."""

from __future__ import annotations

import math
import time

from headrace.store.sql import Sql
from headrace.testing.faults.arena import Arena
from headrace.testing.faults.checker import Kind, Wrong
from headrace.testing.faults.fault import Fault, Interrupted

MANY = 10_000
FILES = 20
END_SECONDS = 900.0
_DAY = 86_400
_CODE = """
from datetime import UTC, datetime, timedelta
from airflow.providers.standard.operators.empty import EmptyOperator
from airflow.sdk import DAG

DUE = datetime.fromtimestamp({due}, UTC)
for number in range({first}, {last}):
    with DAG(f"many_{{number}}", schedule=timedelta(minutes=1), catchup=True, start_date=DUE, end_date=DUE):
        EmptyOperator(task_id="nothing")
"""
STARTED = Sql(
    """
    SELECT run.started_at, run.state FROM run JOIN workflow ON workflow.id = run.workflow_id
    WHERE workflow.name LIKE 'many_%'
    """
)
SAVED = Sql("SELECT count(*) FROM workflow WHERE name LIKE 'many_%'")


def burst(count: int) -> Fault:
    """So many schedules, each with one run."""

    def inject(arena: Arena) -> Interrupted:
        due = math.ceil(time.time() + _lead_seconds(arena, count))
        for number in range(FILES):
            _write(arena, number, count, due)
        arena.cluster.wait_until(lambda: _saved(arena) >= count, f"{count} workflows are saved", END_SECONDS)
        # Nobody can start what nobody knows of.
        known_at = max(due, time.time())
        arena.cluster.wait_until(lambda: _ended(arena) >= count, f"{count} runs have ended", END_SECONDS)
        with arena.cluster.store.read() as tx:
            return Interrupted((), 0.0, [max(0.0, row[0] / 1e6 - known_at) for row in tx.run(STARTED)])

    def check(arena: Arena) -> list[Wrong]:
        with arena.cluster.store.read() as tx:
            runs = len(tx.run(STARTED))
        kind: Kind = "lost" if runs < count else "duplicated"
        return [] if runs == count else [Wrong(kind, f"{count} schedules were due once each and started {runs} runs")]

    name = f"{count:,} schedules due in one minute"
    return Fault(name, "each starts its run once", inject, is_long=True, check=check)


def _lead_seconds(arena: Arena, count: int) -> float:
    """How long it takes until all files are saved, judged by one of them, whose workflows are not due for a day."""
    began = time.monotonic()
    _write(arena, 0, count, math.ceil(time.time()) + _DAY)
    arena.cluster.wait_until(lambda: _saved(arena) >= count // FILES, "the first file is saved", END_SECONDS)
    return 10.0 + FILES * (time.monotonic() - began)


def _write(arena: Arena, number: int, count: int, due: int) -> None:
    first, last = number * count // FILES, (number + 1) * count // FILES
    code = _CODE.format(due=due, first=first, last=last)
    (arena.cluster.project / f"many_{number}.py").write_text(code)


def _saved(arena: Arena) -> int:
    with arena.cluster.store.read() as tx:
        return int(tx.run(SAVED)[0][0])


def _ended(arena: Arena) -> int:
    with arena.cluster.store.read() as tx:
        return sum(row[1] in ("success", "failed") for row in tx.run(STARTED))
