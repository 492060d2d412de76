"""What the store costs: few statements per task, and none that reads finished history."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from copy import copy
from pathlib import Path
from typing import NamedTuple

import pytest
from sqlalchemy import text
from store_bench import Bench, flow, node, report
from store_history import with_history

from headrace.agent import Agent, AgentOptions, Broker
from headrace.clock import SystemClock
from headrace.definition import Deferral, Node, Retry
from headrace.executor import InlineExecutor
from headrace.handoff import Fired, TaskResult
from headrace.store import (
    NewBackfill,
    NewRun,
    RunGraph,
    backfills,
    create_runs,
    fire_triggers,
    insert_backfill,
    pruning,
    reading,
    run_graph,
    runs,
    set_backfill_paused,
    timers,
    wake_due_tasks,
)
from headrace.store.backfills import startable_backfills
from headrace.store.candidates import CANDIDATES
from headrace.store.schema import event, run, trigger
from headrace.store.sql import Sql
from headrace.store.use import USE, WAITING

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


class Cost(NamedTuple):
    statements: float
    commits: float


def cost(bench: Bench, work: Callable[[], object], units: int = 1) -> Cost:
    """What work asks of the store, for each of so many units of it."""
    database = bench.store.database
    statements, commits = database.statements, database.commits
    work()
    return Cost((database.statements - statements) / units, (database.commits - commits) / units)


def test_a_task_of_a_chain_costs_at_most_eight_statements_and_one_commit(bench, tmp_path):
    attempt_id = bench.start(flow(*chain(LENGTH)))
    agent = agent_on(bench, tmp_path, slots=1)
    each = cost(bench, lambda: run_to_the_end(agent), LENGTH)
    assert set(bench.states(attempt_id).values()) == {"success"}
    assert each.statements <= 8.5
    assert each.commits <= 1.1


def test_a_task_of_a_wide_run_costs_far_less_than_a_statement(bench, tmp_path):
    many = [node(f"n{i}", "first") for i in range(100)]
    attempt_id = bench.start(flow(node("first"), *many, node("last", *(one.key for one in many))))
    agent = agent_on(bench, tmp_path, slots=50)
    each = cost(bench, lambda: run_to_the_end(agent), 102)
    assert set(bench.states(attempt_id).values()) == {"success"}
    assert each.statements < 1
    assert each.commits < 0.1


def test_an_agent_that_only_limits_hold_back_looks_again_soon(bench, tmp_path):
    """Who frees the limit may have other queues, and then takes nothing in its place."""
    bench.start(flow(node("a", queue="elsewhere"), node("b"), max_active_tasks=1))
    agent = agent_on(bench, tmp_path, slots=2)
    other = bench.agent()
    (a,) = bench.claim(other, queue="elsewhere")
    agent.step(0.0)
    assert not agent.is_busy and agent._next_look() == 1.0
    bench.end(a)
    agent.step(0.0)
    assert agent.is_busy and agent._next_look() == float("inf")


def test_runs_that_end_together_share_their_statements(bench, tmp_path):
    (workflow_id,) = bench.save(flow(*chain(2)))
    for number in range(20):
        bench.create(workflow_id, f"r{number}")
    bench.activate(workflow_id)
    agent = agent_on(bench, tmp_path, slots=20)
    each = cost(bench, lambda: run_to_the_end(agent), 40)
    assert {one.state for one in bench.rows(run)} == {"success"}
    assert each.statements <= 1.5
    assert each.commits <= 0.1


def chain(length: int) -> list[Node]:
    return [node("n0"), *(node(f"n{i}", f"n{i - 1}") for i in range(1, length))]


LATER = {"again_after_seconds": 60.0}
ON_EVENT = {"deferral": Deferral(trigger="a.Trigger", method="go_on", timeout_seconds=60)}


@pytest.mark.parametrize(
    ("outcome", "fields", "most"),
    [("success", {}, 9), ("failed", {}, 8), ("again", LATER, 7), ("deferred", ON_EVENT, 9)],
)
def test_each_way_to_end_an_execution_costs_few_statements(bench, outcome, fields, most):
    bench.start(flow(node("a", retry=Retry(limit=1, delay_seconds=60)), node("b", "a")))
    (task,) = bench.claim(bench.agent())
    ended = cost(bench, lambda: bench.end(task, outcome, **fields))
    assert ended.statements <= most
    assert ended.commits == 1


@pytest.mark.parametrize(("outcome", "fields"), [("failed", {}), ("again", LATER), ("deferred", ON_EVENT)])
def test_whatever_is_due_at_once_is_woken_with_few_statements(bench, outcome, fields):
    names = [f"n{i}" for i in range(50)]
    attempt_id = bench.start(flow(*(node(name, retry=Retry(limit=1, delay_seconds=60)) for name in names)))
    bench.record(*(report(task, outcome, **fields) for task in bench.claim(bench.agent())))
    bench.advance(61)
    woken = cost(bench, lambda: bench.store.transact(lambda tx: wake_due_tasks(tx, bench.now)))
    assert set(bench.states(attempt_id).values()) == {"scheduled"}
    assert woken.statements <= 9
    assert woken.commits == 1


def test_events_of_many_triggers_cost_few_statements(bench):
    attempt_id = bench.start(flow(*(node(f"n{i}") for i in range(50))))
    bench.record(*(report(task, "deferred", **ON_EVENT) for task in bench.claim(bench.agent())))
    told = [Fired(trigger_id=row.id, event=1) for row in bench.rows(trigger)]

    def fire(tx):
        return fire_triggers(tx, RunGraph(tx, bench.now), told, None, {})

    fired = cost(bench, lambda: bench.store.transact(fire))
    assert set(bench.states(attempt_id).values()) == {"scheduled"}
    assert fired.statements <= 10
    assert fired.commits == 1


def test_a_claim_does_not_pay_for_tasks_that_wait_for_triggers(bench):
    bench.start(flow(*(node(f"n{i}") for i in range(500)), name="waits"))
    bench.record(*(report(task, "deferred", **ON_EVENT) for task in bench.claim(bench.agent(), limit=500)))
    for key in ("claimable", "claimable too"):
        bench.start(flow(node("a", max_active_per_run=1), name=key))
    with bench.store.begin() as tx:
        tx.change(Sql("ANALYZE"))
    for name, statement, parameters in (
        ("limits", USE, {"agent_id": 1}),
        ("limits of tasks", WAITING, {"keys": ["a"], "workflow_ids": [1, 2, 3]}),
    ):
        assert rows_read(bench, statement, parameters) <= 10, name


@pytest.mark.parametrize("is_analyzed", [True, False], ids=["analyzed", "not analyzed"])
def test_the_next_run_does_not_pay_for_those_that_wait_behind_it(bench, is_analyzed):
    (workflow_id,) = bench.save(flow(node("a"), name="long", max_active_runs=2))
    (filled_id,) = bench.save(flow(node("a"), name="filled", max_active_runs=2))
    with bench.store.begin() as tx:
        backfill_id = insert_backfill(tx, NewBackfill(filled_id, 0, 500, max_active_runs=2), bench.now)
        early = bench.now - 1000
        queue = [NewRun(workflow_id, f"r{number}", run_after=early + number) for number in range(500)]
        order = [
            NewRun(filled_id, f"b{number}", run_after=early, backfill_id=backfill_id, backfill_order=number)
            for number in range(500)
        ]
        create_runs(tx, queue + order, bench.now)
    for one in (workflow_id, filled_id):
        bench.activate(one)
    if is_analyzed:
        with bench.store.begin() as tx:
            tx.change(Sql("ANALYZE"))
    following = {"now": bench.now, "limit": 1, "ended": [1]}
    for name, statement, parameters in (
        ("next", runs.STARTABLE, {"workflow_id": workflow_id, "backfill_id": 0, **following}),
        ("next of backfill", backfills.STARTABLE, {"workflow_id": filled_id, "backfill_id": backfill_id, **following}),
        ("running", runs.RUNNING_RUNS, {"workflow_id": workflow_id, "backfill_id": 0, **following}),
        ("locking", runs.LOCK_WORKFLOWS, {"ids": [workflow_id, filled_id]}),
        ("waiting", timers.WAITING_WORKFLOWS, {"now": bench.now, "limit": 9}),
        ("outlook", timers.OUTLOOK, {"now": bench.now, "limit": 1}),
    ):
        # Behind each there are 500. Versions of SQLite differ by a few instructions for what they do read.
        assert rows_read(bench, statement, parameters) <= 60, name


@pytest.mark.parametrize("is_analyzed", [True, False], ids=["analyzed", "not analyzed"])
def test_a_paused_backfill_costs_no_more_than_one_run_of_it(bench, is_analyzed):
    (workflow_id,) = bench.save(flow(node("a")))
    with bench.store.begin() as tx:
        paused, going_on = (
            insert_backfill(tx, NewBackfill(workflow_id, 0, 500, max_active_runs=1), bench.now) for _ in range(2)
        )
        create_runs(
            tx,
            [
                NewRun(workflow_id, f"b{backfill_id}-{number}", backfill_id=backfill_id, backfill_order=number)
                for backfill_id in (paused, going_on)
                for number in range(500)
            ],
            bench.now,
        )
        set_backfill_paused(tx, paused, True)
        if is_analyzed:
            tx.change(Sql("ANALYZE"))
    found = {"workflow_id": workflow_id, "backfill_id": going_on, "now": bench.now, "limit": 1}
    with bench.store.begin() as tx:
        ((backfill_id, attempt_ids),) = startable_backfills(tx, workflow_id, bench.now, 1)
    assert (backfill_id, len(attempt_ids)) == (going_on, 1)
    assert rows_read(bench, backfills.WAITING, found) + rows_read(bench, backfills.STARTABLE, found) <= 30
    assert rows_read(bench, timers.OUTLOOK, {"now": bench.now, "limit": 1}) <= 30


def rows_read(bench: Bench, statement: Sql, parameters: dict) -> int:
    """How many rows a statement looks at."""
    if bench.store.database.dialect == "sqlite":
        return steps(bench, statement, parameters) // 25
    with bench.store.begin() as tx:
        analyzed = copy(statement)
        analyzed.postgres = f"EXPLAIN (ANALYZE, FORMAT JSON) {statement.postgres}"
        return sum(scanned(tx.run(analyzed, parameters)[0][0][0]["Plan"]))


def scanned(plan: dict) -> Iterator[int]:
    if plan["Node Type"].endswith("Scan"):
        yield round((plan["Actual Rows"] + plan.get("Rows Removed by Filter", 0)) * plan["Actual Loops"])
    for child in plan.get("Plans", ()):
        yield from scanned(child)


def steps(bench: Bench, statement: Sql, parameters: dict) -> int:
    """How many instructions SQLite's machine executes for a statement; a row takes a dozen or two."""
    made = 0

    def count() -> None:
        nonlocal made
        made += 1

    with bench.store.begin() as tx:
        driver = tx.connection.connection.driver_connection
        driver.set_progress_handler(count, 1)
        try:
            tx.run(statement, parameters)
        finally:
            driver.set_progress_handler(None, 0)
    return made


# ---- plans -------------------------------------------------------------------------------------------------------


@pytest.fixture(params=[True, False], ids=["analyzed", "not analyzed"])
def historic(bench, request):
    """A store in which 20,000 tasks have ended and a few are active."""
    bench.attempt_id = with_history(bench, HISTORY, is_analyzed=request.param)
    return bench


HOT = {
    "claim": (
        CANDIDATES,
        {"queue": "default", "limit": 8, "full_pools": ["x"], "full_attempts": [7]},
        "ix_task_claimable",
    ),
    "active": (USE, {"agent_id": 1}, "ix_task_active"),
    "deferred": (USE, {"agent_id": 1}, "ix_task_deferred"),
    "waiting": (WAITING, {"keys": ["n1"], "workflow_ids": [1]}, "ix_task_deferred_key"),
    "waiting backfills": (backfills.WAITING, {"workflow_id": 1}, "ix_run_active"),
    "startable of backfills": (
        backfills.STARTABLE,
        {"workflow_id": 1, "backfill_id": 1, "now": 5, "limit": 100},
        "ix_run_active",
    ),
    "has backfill": (runs.LOCK_WORKFLOWS, {"ids": [1, 2]}, "ix_run_active"),
    "startable": (
        runs.STARTABLE,
        {"workflow_id": 1, "backfill_id": 0, "ended": [1], "now": 5, "limit": 100},
        "ix_run_active",
    ),
    "running": (runs.RUNNING_RUNS, {"workflow_id": 1, "backfill_id": 0, "ended": [1]}, "ix_run_active"),
    "old runs": (pruning.OLD_RUNS, {"before": 5, "limit": 50}, "ix_run_ended"),
    "due": (timers.DUE_TASKS, {"now": 5, "limit": 500}, "ix_task_due"),
    "children": (run_graph.CHILDREN, {"ids": [1, 2]}, "ix_task_parent"),
    "downstream": (run_graph.DOWNSTREAM, {"ids": [2, 3]}, "pk_edge"),
    "downstream of ended": (run_graph.DOWNSTREAM_OF_ENDED, {"ids": [2, 3]}, "pk_edge"),
    "upstream": (run_graph.UPSTREAM, {"ids": [2, 3]}, "ix_edge_downstream"),
    "by key": (run_graph.BY_KEY, {"attempt_id": 1, "keys": ["n1"]}, "uq_task_live"),
    "of attempt": (run_graph.OF_ATTEMPT, {"attempt_id": 1}, "uq_task_live"),
}


def test_hot_statements_use_their_indexes_whatever_the_history(historic):
    check_hot_plans(historic)


@pytest.mark.long
@pytest.mark.parametrize("is_analyzed", [True, False], ids=["analyzed", "not analyzed"])
def test_hot_statements_use_their_indexes_with_a_million_old_tasks(bench, is_analyzed):
    with_history(bench, 1_000_000, is_analyzed=is_analyzed)
    check_hot_plans(bench)


def test_the_runs_of_a_workflow_are_not_looked_for_among_those_of_others(historic):
    page = {"workflow_id": 3, "before": 1 << 60, "limit": 50}
    for statement, parameters in ((reading.RUNS_OF_WORKFLOW, page), (reading.WORKFLOWS_BY_NAME, {"name": "old3"})):
        plan = explain(historic, statement, parameters, may_read_all=False)
        among_all = re.compile(r"pk_run\b|Seq Scan on run |SCAN run\b|SEARCH run USING INTEGER PRIMARY KEY")
        assert not [line for line in plan if among_all.search(line)], plan


def check_hot_plans(bench: Bench) -> None:
    is_sqlite = bench.store.database.dialect == "sqlite"
    for name, (statement, parameters, index) in HOT.items():
        index = index.replace("pk_edge", "sqlite_autoindex_edge_1") if is_sqlite else index
        for form in explained(statement):
            plan = plan_of(bench, form, parameters)
            assert not [line for line in plan if reads_everything(line)], (name, plan)
            assert any(index in line for line in plan), "\n".join((name, *plan))


def reads_everything(line: str) -> bool:
    is_scan = line.startswith("SCAN task") and "INDEX" not in line
    return is_scan or "Seq Scan on task" in line or "Seq Scan on edge" in line


def explain(bench: Bench, statement: Sql, parameters: dict, *, may_read_all: bool = True) -> list[str]:
    """The plan of a statement with these parameters, one step a line; as for a large table if it may not read all."""
    forms = explained(statement)
    return [line for form in forms for line in plan_of(bench, form, parameters, may_read_all=may_read_all)]


def plan_of(bench: Bench, form: Sql, parameters: dict, *, may_read_all: bool = True) -> list[str]:
    """What one of the `explained` tells, one step a line."""
    with bench.store.begin() as tx:
        if not may_read_all and tx.dialect == "postgres":
            tx.execute(text("SET LOCAL enable_seqscan = off"))
        return [str(row[-1]) for row in tx.run(form, parameters)]


def explained(statement: Sql, options: str = "") -> list[Sql]:
    """What tells the plan of a statement; on SQLite first that for lists of any length, then that for lists of one."""
    forms = []
    for text_ in dict.fromkeys((statement.sqlite, statement.sqlite_for_ones)):
        form = copy(statement)
        form.sqlite = f"EXPLAIN QUERY PLAN {text_}"
        form.postgres = f"EXPLAIN {options} {statement.postgres}"
        form.lists, form.has_rows, form.changes_all = (), True, False
        forms.append(form)
    return forms


def test_the_history_costs_a_claim_nothing(historic, tmp_path):
    agent = agent_on(historic, tmp_path, slots=8)
    run_to_the_end(agent)
    assert set(historic.states(historic.attempt_id).values()) == {"success"}
    events = historic.rows(event, event.c.attempt_id == historic.attempt_id)
    assert len(events) == 2 + 2 + 21 * 4
