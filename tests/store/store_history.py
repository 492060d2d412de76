"""A store with a long history: as many finished tasks as a test wants, with everything that belongs to them."""

from __future__ import annotations

from store_bench import Bench, flow, node

from headrace.store.schema import attempt, run
from headrace.store.sql import Sql
from headrace.store.task_rows import TASK_COLUMNS

TASKS_PER_RUN = 50
WORKFLOWS = 20

_NUMBERS = "WITH RECURSIVE numbers (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM numbers WHERE i < :count - 1)"
_OLD_TASK = {
    "id": "1000000 + i", "origin_id": "1000000 + i", "key": "'old' || i", "attempt_id": "1000 + i / 50",
    "parent_id": "20000000 + i / 50", "state": "'success'", "ended_at": "1",
}  # fmt: skip
_OLD_RUN = {
    "id": "1000 + i", "workflow_id": "run.workflow_id + 1 + i % 20", "key": "'old' || i", "state": "'success'",
    "logical_at": "i", "unique_at": "i", "started_at": "1", "ended_at": "1",
}  # fmt: skip
_OLD_ATTEMPT = {
    "id": "1000 + i", "run_id": "1000 + i", "workflow_id": "attempt.workflow_id + 1 + i % 20",
    "state": "'success'", "ended_at": "1", "root_id": "20000000 + i",
}  # fmt: skip


def _copies(table: str, columns: list[str], changed: dict[str, str], condition: str) -> Sql:
    chosen = ", ".join(changed.get(name, f"{table}.{name}") for name in columns)
    return Sql(
        f"{_NUMBERS} INSERT INTO {table} ({', '.join(columns)})"
        f" SELECT {chosen} FROM {table} CROSS JOIN numbers WHERE {condition}"
    )


ADD_RUNS = _copies("run", list(run.c.keys()), _OLD_RUN, "run.key = 'r1'")
ADD_ATTEMPTS = _copies("attempt", list(attempt.c.keys()), _OLD_ATTEMPT, "attempt.number = 1")
ADD_TASKS = _copies("task", list(TASK_COLUMNS), _OLD_TASK, "task.key = 'n1'")
ADD_EDGES = Sql(
    f"""
    {_NUMBERS} INSERT INTO edge (upstream_id, downstream_id, is_setup)
    SELECT 1000000 + i, 1000001 + i, edge.is_setup FROM edge CROSS JOIN numbers
    """
)
ADD_TRIES = Sql(
    f"""
    {_NUMBERS} INSERT INTO try (task_id, fence, try_number, state, ended_at)
    SELECT 1000000 + i, 1, 1, 'success', 1 FROM numbers
    """
)
ADD_VALUES = Sql(
    f"""
    {_NUMBERS} INSERT INTO value (task_id, name, attempt_id, kind, document)
    SELECT 1000000 + i, 'return_value', 1000 + i / 50, 'result', '1' FROM numbers
    """
)
ADD_EVENTS = Sql(
    f"""
    {_NUMBERS} INSERT INTO event (attempt_id, task_id, before, after, actor, try_number, at)
    SELECT 1000 + i / 50, 1000000 + i, 'running', 'success', 'agent', 1, 1 FROM numbers
    """
)
ADD_DEADLINES = Sql(
    f"""
    {_NUMBERS} INSERT INTO deadline (run_id, workflow_id, name, task, due_at, missed_at, is_told, is_mailed)
    SELECT 1000 + i, 1, 'late', '', i, i, false, false FROM numbers
    """
)


def with_history(bench: Bench, tasks: int, *, is_analyzed: bool = True) -> int:
    """Give a store an attempt of which twenty tasks wait, and this many tasks of runs that have ended."""
    own = flow(*(node(f"n{i}") for i in range(20)), node("last", "n0"))
    others = [flow(node("a"), name=f"old{number}") for number in range(WORKFLOWS)]
    attempt_id = bench.start(own)
    bench.save(*others, file="old.py")
    with bench.store.begin() as tx:
        for statement in (ADD_RUNS, ADD_ATTEMPTS, ADD_DEADLINES):
            tx.change(statement, {"count": tasks // TASKS_PER_RUN})
        for statement in (ADD_TASKS, ADD_EDGES, ADD_TRIES, ADD_VALUES, ADD_EVENTS):
            tx.change(statement, {"count": tasks})
        if is_analyzed:
            tx.change(Sql("ANALYZE"))
    return attempt_id
