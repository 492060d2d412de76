"""What the metrics tell of the store, on both databases."""

from __future__ import annotations

import re

from headrace.actions.monitoring import store_readings
from headrace.clock import SystemClock
from headrace.definition import Deferral, Node, Retry, Workflow
from headrace.handoff import TaskError, TaskResult
from headrace.metrics.catalogue import RUN_LAG, RUNS_ENDED, TASK_LAG, TRIES_ENDED
from headrace.store import ScheduleRow, Store, backlog, lateness, presence, save_schedule, workflows_named
from headrace.store.backlog import read_backlog, store_size
from headrace.store.sql import Sql
from headrace.testing.engine import Engine


def job(key, *upstream, **given):
    return Node(key=key, operator="python", upstream=upstream, **given)


def numbers(world):
    return {
        (reading.family.name.removeprefix("headrace_"), *sample.labels): sample.value
        for reading in store_readings(world.store, world.clock)
        for sample in reading.samples
    }


def test_what_waits_and_what_runs_by_pool_and_queue(world):
    world.save(job("a"), job("b"), job("c", queue="heavy"), job("d", "a"))
    world.trigger()
    world.join()
    world.claim()
    world.pass_seconds(40)
    found = numbers(world)
    assert found["tasks_ready", "default_pool", "default"] == 1
    assert found["tasks_ready", "default_pool", "heavy"] == 1
    assert found["tasks_ready_oldest_seconds", "default_pool", "heavy"] == 40
    assert found["tasks_running", "default_pool", "default"] == 1
    assert (found["pool_slots", "default_pool"], found["pool_slots_used", "default_pool"]) == (128, 1)
    assert (found["runs_active", "running"], found["runs_active", "queued"]) == (1, 0)
    assert found["processes_alive", "agent"] == 0, "its lease ran out"
    assert found["store_reachable",] == 1
    assert found["store_bytes",] > 100_000


def test_processes_that_are_stopping_are_counted_apart(world):
    world.join(name="one")
    world.join(name="two")
    world.begin_to_stop()
    found = numbers(world)
    assert (found["processes_alive", "agent"], found["processes_stopping", "agent"]) == (1, 1)
    assert (found["processes_alive", "scheduler"], found["processes_stopping", "scheduler"]) == (0, 0)


def test_triggers_of_a_triggerer_that_is_stopping_wait(world):
    world.save(job("a", deferral=Deferral(trigger="a.Trigger")), job("b", deferral=Deferral(trigger="a.Trigger")))
    world.trigger()
    assert numbers(world)["triggers_waiting",] == 2
    world.join(kind="triggerer", name="t-1", queues=())
    world.claim_triggers()
    assert numbers(world)["triggers_waiting",] == 0
    world.begin_to_stop()
    found = numbers(world)
    assert found["triggers_waiting",] == 2
    assert (found["processes_alive", "triggerer"], found["processes_stopping", "triggerer"]) == (0, 1)


def test_schedules_that_nobody_serves(world):
    world.save(job("a"))
    with world.store.begin() as tx:
        (workflow,) = workflows_named(tx, "flow")
        due = world.now + 60_000_000
        save_schedule(tx, ScheduleRow(workflow.id, "digest", world.now, world.now, due, due, None))
    assert numbers(world)["schedules_due",] == 0
    world.pass_seconds(180)
    found = numbers(world)
    assert (found["schedules_due",], found["schedules_due_oldest_seconds",]) == (1, 120)


def test_timers_that_nobody_serves(world):
    world.save(job("a", retry=Retry(limit=1, delay_seconds=30)))
    world.trigger()
    world.join()
    world.claim()
    world.finish("a", "failed")
    assert numbers(world)["timers_due_oldest_seconds",] == 0
    world.pass_seconds(100)
    assert numbers(world)["timers_due_oldest_seconds",] == 70


def test_counting_ends_at_a_bound(world):
    world.save(*(job(f"t{number}") for number in range(12)))
    world.trigger()
    with world.store.read() as tx:
        assert [one.number for one in read_backlog(tx, world.now, most=5).ready] == [5]


def test_the_size_of_the_history_is_about_right(world):
    world.save(*(job(f"t{number}") for number in range(12)))
    for _ in range(3):
        world.trigger()
        world.pass_seconds(1)
    if world.store.database.dialect == "postgres":
        with world.store.begin() as tx:
            tx.connection.exec_driver_sql("ANALYZE")
    with world.store.read() as tx:
        rows = store_size(tx).rows
    assert (rows["run"], rows["task"]) == (3, 39)
    assert set(rows) == set(backlog._GROWING)


def test_nothing_that_is_looked_at_reads_the_history(tmp_path):
    """On SQLite; the plans of PostgreSQL are looked at together with all others."""
    store = Store(f"sqlite:///{tmp_path}/headrace.db")
    looked_at = [one for room in (backlog, lateness, presence) for one in vars(room).values() if isinstance(one, Sql)]
    with store.read() as tx:
        lines = [row[3] for one in looked_at for row in tx.run(_explained(one), dict.fromkeys(NAMES, 1))]
    store.dispose()
    assert len(lines) > 50
    whole = [line for line in lines if re.fullmatch(r"SCAN (task|run|attempt|event|edge|try|value|errand)", line)]
    assert whole == []


NAMES = ("now", "most", "before", "limit", "since", "ids", "tables")


def _explained(statement):
    return Sql(f"[[sqlite: EXPLAIN QUERY PLAN {statement.sqlite}]][[postgres: SELECT 1]]")


def test_a_store_that_is_away_is_told_and_nothing_else(postgres_server):
    url = postgres_server.new_database()
    store = Store(url)
    store.close()
    postgres_server.drop_database(url)
    (reading,) = store_readings(store, SystemClock())
    assert (reading.family.name, reading.samples[0].value) == ("headrace_store_reachable", 0)
    store.dispose()


def test_lags_and_ends_are_counted_with_the_commit(tmp_path):
    engine = Engine(tmp_path)
    before = counted()
    engine.start(flow("good"))
    engine.start(flow("bad"), {"a": failed})
    engine.settle()
    assert [new - old for old, new in zip(before, counted(), strict=True)] == [1, 1, 2, 2]
    engine.close()


def counted():
    return (
        RUNS_ENDED.value("success"), TRIES_ENDED.value("failed"), TASK_LAG.count("default"), RUN_LAG.count("manual"),
    )  # fmt: skip


def flow(name):
    return Workflow(name=name, language="python", nodes=(Node(key="", kind="group"), job("a", parent="")))


def failed(request):
    error = TaskError(type="ValueError", message="boom")
    return TaskResult(task_id=request.task_id, fence=request.fence, outcome="failed", error=error)
