"""Two backfills of one workflow go on at once where runs of an ended one were opened again: none hides the other."""

from __future__ import annotations

from sqlalchemy import select
from timed_bench import flow, node

from headrace.scheduler import RunActivator, Scheduler
from headrace.store import (
    NewBackfill,
    NewRun,
    cancel_attempt,
    clear_tasks,
    create_runs,
    insert_backfill,
    set_backfill_paused,
    start_queued_runs,
)
from headrace.store import schema as tables


def fill(bench, workflow_id: int, runs: int) -> int:
    """Begin a backfill with that many runs, of which one may run at a time."""

    def work(tx):
        backfill_id = insert_backfill(tx, NewBackfill(workflow_id, 0, runs, max_active_runs=1), bench.micros)
        new = [
            NewRun(workflow_id, f"{backfill_id}-{number}", "backfill", backfill_id=backfill_id, backfill_order=number)
            for number in range(runs)
        ]
        create_runs(tx, new, bench.micros)
        start_queued_runs(tx, workflow_id, bench.micros)
        return backfill_id

    return bench.store.transact(work)


def attempts(bench, backfill_id: int):
    query = select(tables.attempt).join(tables.run).where(tables.run.c.backfill_id == backfill_id)
    with bench.store.read() as tx:
        return list(tx.execute(query.order_by(tables.run.c.backfill_order)))


def states(bench, backfill_id: int) -> list[str]:
    return [one.state for one in attempts(bench, backfill_id)]


def clear(bench, attempt) -> None:
    (task,) = bench.rows(tables.task, tables.task.c.attempt_id == attempt.id, tables.task.c.key == "a")
    bench.store.transact(lambda tx: clear_tasks(tx, attempt.id, [task.id], bench.micros))


def full_and_waiting(bench) -> tuple[int, int]:
    """An earlier backfill whose limit is reached by runs that were cleared, and a later one with room for a run."""
    (workflow_id,) = bench.save(flow("w", node("a")))
    earlier, agent = fill(bench, workflow_id, 2), bench.agent(lease=1e6)
    scheduler = Scheduler(bench.store, bench.clock)
    for _ in range(2):
        bench.finish_everything(agent)
        scheduler.tick()
    assert states(bench, earlier) == ["success", "success"]
    later = fill(bench, workflow_id, 2)
    for attempt in attempts(bench, earlier):
        clear(bench, attempt)
    assert states(bench, earlier) == ["running", "queued"]
    running = attempts(bench, later)[0].id
    bench.store.transact(lambda tx: cancel_attempt(tx, running, bench.micros))
    return earlier, later


def test_a_full_backfill_does_not_hide_a_later_one_that_has_room(bench):
    earlier, later = full_and_waiting(bench)
    Scheduler(bench.store, bench.clock).tick()
    assert states(bench, later) == ["canceled", "running"]
    assert states(bench, earlier) == ["running", "queued"]


def test_a_paused_backfill_is_not_started_beside_a_full_one(bench):
    _, later = full_and_waiting(bench)
    bench.store.transact(lambda tx: set_backfill_paused(tx, later, True))
    assert RunActivator(bench.store).tick(bench.now) == 0
    assert states(bench, later) == ["canceled", "queued"]
    bench.store.transact(lambda tx: set_backfill_paused(tx, later, False))
    assert RunActivator(bench.store).tick(bench.now) == 1
    assert states(bench, later) == ["canceled", "running"]
