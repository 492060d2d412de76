"""Events of assets become runs: each event is taken once and none is lost, however many schedulers there are."""

from __future__ import annotations

import threading

from sqlalchemy import select
from timed_bench import Bench, flow, node

from headrace.definition import AssetUse, Schedule
from headrace.handoff import AssetEvent
from headrace.scheduler import Pruner, RunStarter
from headrace.store import Store, emit_events, queued_events, set_paused
from headrace.store import schema as tables


def consumer(name="w", *assets, when=None, **fields):
    """A workflow that is scheduled on all of these assets."""
    when = when or {"all": [{"asset": one} for one in assets]}
    uses = tuple(AssetUse(name=one, role="schedule", uri=f"s3://{one}") for one in assets)
    return flow(name, schedule=Schedule(type="assets", spec={"when": when}), assets=uses, **fields)


def emit(bench, *names, aliases=()):
    events = [(AssetEvent(asset=name, aliases=tuple(aliases)), None) for name in names]
    return bench.store.transact(lambda tx: emit_events(tx, events, bench.micros))


def attached(bench):
    """The events of each run that events have started, by run."""
    found: dict[int, list[int]] = {}
    with bench.store.read() as tx:
        for row in tx.execute(select(tables.run_asset_event).order_by("run_id", "event_id")):
            found.setdefault(row.run_id, []).append(row.event_id)
    return found


def test_event_from_outside_starts_what_waits_for_it(bench):
    bench.save(consumer("w", "a"))
    starter = RunStarter(bench.store)
    starter.tick(bench.now)
    assert bench.runs() == []
    (event_id,) = emit(bench, "a")
    assert starter.tick(bench.now) == 1
    (run,) = bench.rows(tables.run)
    assert (run.type, run.state, run.logical_at, run.run_after) == ("asset_triggered", "running", None, bench.micros)
    assert attached(bench) == {run.id: [event_id]}
    assert starter.tick(bench.now) == 0


def test_event_of_a_task_is_recorded_with_its_success_and_no_other_outcome(bench):
    bench.save(consumer("w", "a"))
    bench.start(flow("p", node("x"), node("y")), key="r")
    agent_id = bench.agent()
    tasks = {task.key: task for task in bench.claim(agent_id)}
    bench.end(tasks["y"], "skipped", events=(AssetEvent(asset="a"),))
    assert bench.count(tables.asset_event) == 0
    bench.end(tasks["x"], events=(AssetEvent(asset="a", extra={"rows": 5}),))
    (event,) = bench.rows(tables.asset_event)
    assert (event.workflow, event.run_key, event.task, event.map_index) == ("p", "r", "x", -1)
    assert event.extra == '{"rows":5}'
    RunStarter(bench.store).tick(bench.now)
    assert len(bench.runs("w")) == 1


def test_result_that_came_too_late_updates_nothing(bench):
    bench.start(flow("p", node("x")))
    agent_id = bench.agent()
    (task,) = bench.claim(agent_id)
    bench.end(task, events=(AssetEvent(asset="a"),))
    bench.end(task, events=(AssetEvent(asset="a"),))
    assert bench.count(tables.asset_event) == 1


def test_paused_workflow_gathers_nothing_but_keeps_what_had_come(bench):
    (workflow_id,) = bench.save(consumer("w", "a", "b"))
    starter = RunStarter(bench.store)
    emit(bench, "a")
    starter.tick(bench.now)
    bench.store.transact(lambda tx: set_paused(tx, workflow_id, True))
    emit(bench, "b")
    starter.tick(bench.now)
    bench.store.transact(lambda tx: set_paused(tx, workflow_id, False))
    starter.tick(bench.now)
    assert bench.runs() == []
    emit(bench, "b")
    starter.tick(bench.now)
    assert len(bench.runs()) == 1


def test_event_that_was_enough_before_the_pause_starts_a_run_after_it(bench):
    (workflow_id,) = bench.save(consumer("w", "a"))
    starter = RunStarter(bench.store)
    starter.tick(bench.now)
    emit(bench, "a")
    bench.store.transact(lambda tx: set_paused(tx, workflow_id, True))
    starter.tick(bench.now)
    assert bench.runs() == []
    bench.store.transact(lambda tx: set_paused(tx, workflow_id, False))
    starter.tick(bench.now)
    assert len(bench.runs()) == 1


def test_no_run_is_created_while_the_workflow_has_enough_to_do(bench):
    bench.save(consumer("w", "a", max_active_runs=1))
    starter, agent_id = RunStarter(bench.store), bench.agent(lease=1e6)
    emit(bench, "a")
    starter.tick(bench.now)
    for _ in range(3):
        emit(bench, "a")
        starter.tick(bench.advance(seconds=5))
    assert len(bench.runs()) == 1
    bench.finish_everything(agent_id)
    starter.tick(bench.advance(seconds=5))
    assert [len(events) for events in attached(bench).values()] == [1, 3]


def test_alias_and_asset_are_two_ways_to_wait_for_one_event(bench):
    bench.save(consumer("by_asset", "a"))
    alias = AssetUse(name="x", kind="alias", role="schedule")
    schedule = Schedule(type="assets", spec={"when": {"any": [{"alias": "x"}, {"asset": "a"}]}})
    uses = (alias, AssetUse(name="a", role="schedule", uri="a"))
    bench.save(flow("by_both", schedule=schedule, assets=uses))
    emit(bench, "a", aliases=["x"])
    RunStarter(bench.store).tick(bench.now)
    assert (len(bench.runs("by_asset")), len(bench.runs("by_both"))) == (1, 1)
    assert sorted(map(len, attached(bench).values())) == [1, 1]


def test_workflow_that_no_longer_waits_for_an_asset_is_left_alone(bench):
    (workflow_id,) = bench.save(consumer("w", "a"))
    bench.save(consumer("w", "b"))
    emit(bench, "a")
    RunStarter(bench.store).tick(bench.now)
    with bench.store.read() as tx:
        assert queued_events(tx, workflow_id) == []
    assert bench.runs() == []


def test_old_events_are_forgotten_once_nothing_needs_them(bench):
    bench.save(consumer("w", "a"), consumer("pair", "a", "b"), file="consumers.py")
    emit(bench, "a")
    emit(bench, "lonely")
    RunStarter(bench.store).tick(bench.now)
    Pruner(bench.store, retention_days=1).tick(bench.advance(days=2))
    assert [row.id for row in bench.rows(tables.asset_event)] == [1], "a run and a queue still speak of it"


def test_many_events_and_several_schedulers_lose_nothing_and_take_nothing_twice(bench, prepared_url):
    """Three emitters and three schedulers at once; each event must end up in exactly one run of each consumer."""
    bench.save(consumer("one", "a"), consumer("two", "a"), consumer("pair", "a", "b"), file="consumers.py")
    emitted, failures = [], []
    has_emitted = threading.Event()
    lock = threading.Lock()

    def in_thread(work):
        def live():
            own = Bench(prepared_url)
            try:
                work(own)
            except Exception as error:
                failures.append(error)
            finally:
                own.close()

        thread = threading.Thread(target=live)
        thread.start()
        return thread

    def emit_many(own):
        for number in range(20):
            ids = emit(own, "a", *(["b"] if number % 5 == 0 else []))
            with lock:
                emitted.extend(ids[:1])

    def schedule(own):
        starter = RunStarter(own.store)
        while not has_emitted.is_set():
            starter.tick(own.now)

    schedulers = [in_thread(schedule) for _ in range(3)]
    emitters = [in_thread(emit_many) for _ in range(3)]
    for thread in emitters:
        thread.join()
    has_emitted.set()
    for thread in schedulers:
        thread.join()
    assert failures == []
    starter = RunStarter(Store(prepared_url))
    for _ in range(5):
        starter.tick(bench.advance(seconds=5))
    agent_id = bench.agent(lease=1e6)
    bench.finish_everything(agent_id)
    starter.tick(bench.advance(seconds=5))
    for name in ("one", "two"):
        with bench.store.read() as tx:
            taken = list(
                tx.execute(
                    select(tables.run_asset_event.c.event_id)
                    .join(tables.run, tables.run.c.id == tables.run_asset_event.c.run_id)
                    .join(tables.workflow, tables.workflow.c.id == tables.run.c.workflow_id)
                    .where(tables.workflow.c.name == name)
                ).scalars()
            )
        assert sorted(taken) == sorted(emitted)
    assert bench.count(tables.asset_event) == 72
