"""What every tick asks, and every look of a sensor, is answered by an index, never by reading whole tables."""

from __future__ import annotations

from copy import copy

import pytest
from sqlalchemy import text

from headrace.store import agents, deadline_rows, deadlines, lookups, pruning, schedules, timers
from headrace.store.database import Transaction

STATEMENTS = {
    "due schedules": (schedules.IS_DUE, {"now": 1}, "ix_schedule_due"),
    "locking due schedules": (schedules.LOCK_DUE, {"now": 1, "limit": 9}, "ix_schedule_due"),
    "active runs": (schedules.OCCUPATION, {"ids": [1, 2]}, "ix_run_active"),
    "due tasks": (timers.IS_TASK_DUE, {"now": 1}, "ix_task_due"),
    "waking": (timers.DUE_TASKS, {"now": 1, "limit": 9}, "ix_task_due"),
    "overdue runs": (timers.OVERDUE, {"now": 1, "limit": 9}, "ix_attempt_timeout"),
    "overdue deadlines": (timers.OVERDUE, {"now": 1, "limit": 9}, "ix_deadline_due"),
    "due deadlines": (deadlines.DUE, {"now": 1, "limit": 9}, "ix_deadline_due"),
    "deadlines of a run": (pruning.DELETE_DEADLINES, {"run_id": 1}, "ix_deadline_run"),
    "deadlines that were met": (
        deadline_rows.DROP_MET,
        {"run_id": 1, "attempt_id": 1, "names": ["a"], "ended_at": 1},
        "uq_task_live",
    ),
    "average of runs": (deadline_rows.AVERAGE, {"workflow_id": 1, "limit": 9}, "ix_run_logical"),
    "sleeping: tasks": (timers.NEXT_DUE, {"now": 1}, "ix_task_due"),
    "sleeping: schedules": (timers.NEXT_DUE, {"now": 1}, "ix_schedule_due"),
    "sleeping: time limits": (timers.NEXT_DUE, {"now": 1}, "ix_attempt_timeout"),
    "sleeping: deadlines": (timers.NEXT_DUE, {"now": 1}, "ix_deadline_due"),
    "sleeping: runs": (timers.NEXT_DUE, {"now": 1}, "ix_run_queued"),
    "waiting runs": (timers.WAITING_WORKFLOWS, {"now": 1, "limit": 9}, "ix_run_active"),
    "stalled: claimable": (timers.QUIET, {"after": 0, "limit": 9}, "ix_task_claimable"),
    "stalled: active": (timers.QUIET, {"after": 0, "limit": 9}, "ix_task_active"),
    "stalled: waiting": (timers.QUIET, {"after": 0, "limit": 9}, "ix_task_due"),
    "stalled: attempts": (timers.QUIET, {"after": 0, "limit": 9}, "ix_attempt_running"),
    "one stalled": (timers.MOVABLE, {"attempt_id": 1}, "uq_task_live"),
    "leases": (agents.IS_EXPIRED, {"now": 1}, "ix_agent_lease"),
    "runs of a sensor's dates": (lookups.RUNS_BY_TIME, {"workflow_id": 1, "times": [1, 2]}, "ix_run_logical"),
    "tasks of a sensor's run": (lookups.TASK_COUNTS, {"attempt_id": 1}, "uq_task_live"),
    "old runs": (pruning.OLD_RUNS, {"before": 1, "limit": 9}, "ix_run_ended"),
    "tasks of an old run": (pruning.CHILDREN, {"ids": [1, 2], "limit": 9}, "ix_task_parent"),
    "events of an old run": (pruning.DELETE_EVENTS, {"attempt_id": 1, "limit": 9}, "ix_event_attempt"),
}
LARGE = ("task", "run", "attempt", "schedule", "event", "workflow", "edge", "try", "value", "deadline")
"""Tables that may never be read as a whole."""


@pytest.mark.parametrize("what", STATEMENTS)
def test_statement_uses_its_index(bench, what):
    statement, parameters, index = STATEMENTS[what]
    plan = explain(bench, statement, parameters)
    assert index in plan
    scans = [line for line in plan.splitlines() if line.strip().startswith(("SCAN ", "->  Seq Scan", "Seq Scan"))]
    assert not [line for line in scans if " USING " not in line and is_large(line)], plan


def is_large(line: str) -> bool:
    name = line.split("SCAN ")[-1].split("Seq Scan on ")[-1].split()[0]
    return name in LARGE


def explain(bench, statement, parameters) -> str:
    with bench.store.begin() as tx:
        if tx.dialect == "sqlite":
            return "\n".join(row[3] for row in rows(tx, "EXPLAIN QUERY PLAN", statement, parameters))
        # With empty tables, reading them as a whole is cheapest; the question is whether an index could do it.
        for setting in ("enable_seqscan", "enable_bitmapscan", "enable_sort"):
            tx.execute(text(f"SET LOCAL {setting} = off"))
        return "\n".join(row[0] for row in rows(tx, "EXPLAIN", statement, parameters))


def rows(tx: Transaction, verb: str, statement, parameters):
    explained = copy(statement)
    explained.sqlite = f"{verb} {statement.sqlite}"
    explained.postgres = f"{verb} {statement.postgres}"
    explained.lists, explained.has_rows = (), True
    return tx.run(explained, parameters)
