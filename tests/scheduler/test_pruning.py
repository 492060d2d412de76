"""Old runs go with everything that belongs to them; whatever is active or young stays whole."""

from __future__ import annotations

from timed_bench import flow, node

from headrace.definition import Node, Retry
from headrace.scheduler import Pruner, Waker
from headrace.store import (
    MemoOwner,
    NewRun,
    add_attempt,
    clear_tasks,
    create_run,
    delete_run,
    resign,
    set_memo,
    set_value,
    start_queued_runs,
)
from headrace.store import schema as tables

BELONGINGS = (tables.attempt, tables.task, tables.edge, tables.try_, tables.value, tables.event, tables.memo)


def run_to_the_end(bench, one, key="r1"):
    attempt = bench.start(one, key)
    bench.finish_everything(bench.agent(lease=1e6))
    return attempt


def test_old_runs_leave_nothing_behind(bench):
    attempt = bench.start(flow("w", node("a", retry=Retry(limit=1)), node("b", "a")))
    agent = bench.agent(lease=1e6)
    (task,) = bench.claim(agent)
    bench.store.transact(lambda tx: set_value(tx, task.id, attempt, "x", "1", None))
    owner = MemoOwner("task", bench.attempt(attempt).run_id, "a")
    bench.store.transact(lambda tx: set_memo(tx, owner, "x", "1", 0, None))
    bench.end(task, "failed")
    bench.finish_everything(agent)
    assert all(bench.count(table) for table in BELONGINGS if table is not tables.value)
    deleted = []
    pruner = Pruner(bench.store, retention_days=7, delete_logs=deleted.extend)
    assert pruner.tick(bench.advance(days=6)) == 0
    assert pruner.tick(bench.advance(days=2)) == 1
    assert {table.name: bench.count(table) for table in (*BELONGINGS, tables.run)} == dict.fromkeys(
        [table.name for table in (*BELONGINGS, tables.run)], 0
    )
    assert len(deleted) == 2
    assert bench.count(tables.workflow) == 1


def test_superseded_tasks_go_too(bench):
    group = Node(key="g", parent="", kind="group", retry=Retry(limit=1, delay_seconds=5))
    attempt = bench.start(flow("w", group, Node(key="g.a", parent="g", operator="work")))
    agent = bench.agent(lease=1e6)
    (task,) = bench.claim(agent)
    bench.end(task, "failed")
    Waker(bench.store).tick(bench.advance(seconds=5))
    bench.finish_everything(agent)
    assert bench.attempt(attempt).state == "success"
    assert [row for row in bench.rows(tables.task) if row.is_superseded]
    assert Pruner(bench.store, retention_days=1).tick(bench.advance(days=2)) == 1
    assert bench.count(tables.task) == 0


def test_active_and_young_runs_stay_whole(bench):
    cleared = run_to_the_end(bench, flow("cleared"))
    old = run_to_the_end(bench, flow("other"), "old")
    task_id = bench.task(cleared).id
    bench.store.transact(lambda tx: clear_tasks(tx, cleared, [task_id], bench.micros))
    going = bench.start(flow("going"))
    queued = bench.start(flow("going", max_active_runs=1), "r2")
    bench.advance(days=30)
    young = run_to_the_end(bench, flow("young"))
    before = {attempt: belongings(bench, attempt) for attempt in (cleared, going, queued, young)}
    assert Pruner(bench.store, retention_days=7).tick(bench.now) == 1
    assert {row.id for row in bench.rows(tables.attempt)} == before.keys()
    assert belongings(bench, old) == (0, 0)
    assert {attempt: belongings(bench, attempt) for attempt in before} == before


def belongings(bench, attempt):
    """How many tasks and events an attempt has."""
    tasks = bench.rows(tables.task, tables.task.c.attempt_id == attempt)
    return len(tasks), len(bench.rows(tables.event, tables.event.c.attempt_id == attempt))


def test_run_with_a_new_attempt_stays(bench):
    (workflow_id,) = bench.save(flow())
    run_id = bench.store.transact(lambda tx: create_run(tx, NewRun(workflow_id, "r1"), bench.micros))
    bench.store.transact(lambda tx: start_queued_runs(tx, workflow_id, bench.micros))
    bench.finish_everything(bench.agent(lease=1e6))
    bench.advance(days=30)
    bench.store.transact(lambda tx: add_attempt(tx, run_id, workflow_id, None, "again", bench.micros))
    assert Pruner(bench.store, retention_days=7).tick(bench.now) == 0
    assert not bench.store.transact(lambda tx: delete_run(tx, run_id, bench.micros)), "nor if it was chosen before"
    assert bench.count(tables.run) == 1


def test_processes_that_are_long_gone_are_forgotten(bench):
    gone, there = bench.agent("gone"), bench.agent("there")
    bench.store.transact(lambda tx: resign(tx, gone, bench.micros))
    assert Pruner(bench.store, retention_days=None).tick(bench.advance(days=2)) == 1
    assert [row.id for row in bench.rows(tables.agent)] == [there]


def test_runs_are_kept_forever_without_a_retention(bench):
    run_to_the_end(bench, flow())
    Pruner(bench.store, retention_days=None).tick(bench.advance(days=10_000))
    assert bench.count(tables.run) == 1


def test_logs_that_cannot_be_deleted_keep_their_run(bench):
    run_to_the_end(bench, flow())

    def refuse(paths):
        raise OSError("read-only file system")

    assert Pruner(bench.store, retention_days=1, delete_logs=refuse).tick(bench.advance(days=2)) == 0
    assert bench.count(tables.run) == 1


def test_small_batches_are_enough_for_many_runs(bench):
    for number in range(5):
        run_to_the_end(bench, flow(), f"r{number}")
    pruner = Pruner(bench.store, retention_days=1, batch_size=2)
    assert [pruner.tick(bench.advance(days=2)) for _ in range(4)] == [2, 2, 1, 0]
