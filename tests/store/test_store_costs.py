"""What the store costs: few statements per task, and none that reads finished history."""

from __future__ import annotations

from copy import copy
from pathlib import Path

import pytest
from store_bench import Bench, flow, node

from headrace.agent import Agent, AgentOptions, Broker
from headrace.clock import SystemClock
from headrace.executor import InlineExecutor
from headrace.handoff import TaskResult
from headrace.store import run_graph, timers
from headrace.store.claims import CANDIDATES, USE
from headrace.store.schema import event
from headrace.store.sql import Sql
from headrace.store.task_rows import TASK_COLUMNS

LENGTH = 50
HISTORY = 20_000


def succeed(request, channel) -> TaskResult:
    return TaskResult(task_id=request.task_id, fence=request.fence, outcome="success")


def agent_on(bench: Bench, tmp_path: Path, slots: int) -> Agent:
    broker = Broker(bench.store)
    executor = InlineExecutor(broker, succeed)
    agent = Agent(bench.store, SystemClock(), executor, InlineExecutor(broker), tmp_path, AgentOptions(slots=slots))
    agent.start(renews_by_itself=False)
    return agent


def run_to_the_end(agent: Agent) -> int:
    """Returns how many steps were made."""
    agent.step(0.0)
    steps = 1
    while agent.is_busy:
        agent.step(0.0)
        steps += 1
    return steps


def test_a_task_of_a_chain_costs_at_most_ten_statements_and_one_commit(bench, tmp_path):
    chain = [node("n0"), *(node(f"n{i}", f"n{i - 1}") for i in range(1, LENGTH))]
    attempt_id = bench.start(flow(*chain))
    agent = agent_on(bench, tmp_path, slots=1)
    statements, commits = bench.store.database.statements, bench.store.database.commits
    run_to_the_end(agent)
    assert set(bench.states(attempt_id).values()) == {"success"}
    per_task = (bench.store.database.statements - statements) / LENGTH
    assert per_task <= 10, f"{per_task} statements per task"
    assert (bench.store.database.commits - commits) / LENGTH <= 1.1


def test_a_wide_run_costs_far_less_than_a_statement_per_task(bench, tmp_path):
    attempt_id = bench.start(flow(*(node(f"n{i}") for i in range(100))))
    agent = agent_on(bench, tmp_path, slots=50)
    statements = bench.store.database.statements
    run_to_the_end(agent)
    assert set(bench.states(attempt_id).values()) == {"success"}
    assert (bench.store.database.statements - statements) / 100 < 1


# ---- plans -------------------------------------------------------------------------------------------------------


_NUMBERS = f"WITH RECURSIVE numbers (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM numbers WHERE i < {HISTORY - 1})"
_OLD = {
    "id": "1000000 + i", "origin_id": "1000000 + i", "key": "'old' || i", "attempt_id": "1000 + i / 50",
    "parent_id": "2000000 + i / 50", "state": "'success'", "ended_at": "1",
}  # fmt: skip
ADD_TASKS = Sql(
    f"""
    {_NUMBERS} INSERT INTO task ({", ".join(TASK_COLUMNS)})
    SELECT {", ".join(_OLD.get(name, f"task.{name}") for name in TASK_COLUMNS)}
    FROM task CROSS JOIN numbers WHERE task.key = 'n1'
    """
)
ADD_EDGES = Sql(
    f"""
    {_NUMBERS} INSERT INTO edge (upstream_id, downstream_id, is_setup)
    SELECT 1000000 + i, 1000001 + i, edge.is_setup FROM edge CROSS JOIN numbers
    """
)


@pytest.fixture
def historic(bench):
    """A store in which 20,000 tasks have ended and a few are active."""
    attempt_id = bench.start(flow(*(node(f"n{i}") for i in range(20)), node("last", "n0")))
    with bench.store.begin() as tx:
        tx.change(ADD_TASKS)
        tx.change(ADD_EDGES)
        tx.change(Sql("ANALYZE"))
    bench.attempt_id = attempt_id
    return bench


HOT = {
    "claim": (
        CANDIDATES,
        {"queue": "default", "limit": 8, "full_pools": ["x"], "full_attempts": [7]},
        "ix_task_claimable",
    ),
    "active": (USE, {}, "ix_task_active"),
    "deferred": (USE, {}, "ix_task_deferred"),
    "due": (timers.DUE_TASKS, {"now": 5, "limit": 500}, "ix_task_due"),
    "children": (run_graph.CHILDREN, {"ids": [1, 2]}, "ix_task_parent"),
    "downstream": (run_graph.DOWNSTREAM, {"ids": [2, 3]}, "pk_edge"),
    "upstream": (run_graph.UPSTREAM, {"ids": [2, 3]}, "ix_edge_downstream"),
    "by key": (run_graph.BY_KEY, {"attempt_id": 1, "keys": ["n1"]}, "uq_task_live"),
    "of attempt": (run_graph.OF_ATTEMPT, {"attempt_id": 1}, "uq_task_live"),
}


def test_hot_statements_use_their_indexes_whatever_the_history(historic):
    for name, (statement, parameters, index) in HOT.items():
        plan = explain(historic, statement, parameters)
        if historic.store.database.dialect == "sqlite":
            index = index.replace("pk_edge", "sqlite_autoindex_edge_1")
        assert not [line for line in plan if reads_everything(line)], (name, plan)
        assert any(index in line for line in plan), (name, plan)


def reads_everything(line: str) -> bool:
    is_scan = line.startswith("SCAN task") and "INDEX" not in line
    return is_scan or "Seq Scan on task" in line or "Seq Scan on edge" in line


def explain(bench: Bench, statement: Sql, parameters: dict) -> list[str]:
    """The plan of a statement with these parameters, one step a line."""
    explained = copy(statement)
    explained.sqlite = f"EXPLAIN QUERY PLAN {statement.sqlite}"
    explained.postgres = f"EXPLAIN {statement.postgres}"
    explained.has_rows = True
    with bench.store.begin() as tx:
        return [str(row[-1]) for row in tx.run(explained, parameters)]


def test_the_history_costs_a_claim_nothing(historic, tmp_path):
    agent = agent_on(historic, tmp_path, slots=8)
    run_to_the_end(agent)
    assert set(historic.states(historic.attempt_id).values()) == {"success"}
    events = historic.rows(event, event.c.attempt_id == historic.attempt_id)
    assert len(events) == 2 + 2 + 21 * 4
