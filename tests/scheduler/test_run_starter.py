"""Due schedules become runs: each time exactly once, whoever looks and whenever somebody dies."""

from __future__ import annotations

import threading
from datetime import UTC, datetime

import pytest
from sqlalchemy import select
from timed_bench import Bench, flow, hourly, node

from headrace.clock import from_micros, to_micros
from headrace.definition import Schedule
from headrace.scheduler import RunActivator, RunStarter
from headrace.store import NewRun, Store, create_run, set_paused
from headrace.store import schema as tables


class Crash(Exception):
    """The process died here."""


def test_run_starts_when_its_time_has_come_and_not_before(bench):
    (workflow_id,) = bench.save(flow(schedule=hourly(start_at="2026-03-02T13:00:00Z")))
    starter = RunStarter(bench.store)
    assert starter.tick(bench.advance(minutes=59)) == 0
    assert bench.runs() == []
    assert starter.tick(bench.advance(minutes=1)) == 1
    ((run,),) = [bench.rows(tables.run)]
    assert (run.key, run.type, run.state) == ("scheduled__2026-03-02T13:00:00+00:00", "scheduled", "running")
    assert run.logical_at == run.interval_start == run.interval_end == run.run_after == bench.micros
    assert from_micros(bench.schedule(workflow_id).next_run_at) == datetime(2026, 3, 2, 14, tzinfo=UTC)
    assert bench.schedule(workflow_id).last_logical_at == bench.micros
    assert starter.tick(bench.now) == 0
    assert len(bench.claim(bench.agent())) == 1


def test_run_for_a_period_starts_at_its_end(bench):
    bench.save(flow(schedule=hourly(spec={"intervals": True}, start_at="2026-03-02T12:00:00Z")))
    starter = RunStarter(bench.store)
    assert starter.tick(bench.advance(minutes=59)) == 0
    starter.tick(bench.advance(minutes=1))
    (run,) = bench.rows(tables.run)
    assert (run.interval_end - run.interval_start, run.run_after) == (3600 * 1_000_000, bench.micros)
    assert bench.times() == ["02 12:00"]


def test_outage_is_caught_up_completely_or_only_with_the_newest_run(bench):
    start = {"start_at": "2026-03-02T12:00:00Z"}
    bench.save(flow("every", schedule=hourly(catch_up="all", **start)))
    bench.save(flow("newest", schedule=hourly(catch_up="latest", **start)))
    starter = RunStarter(bench.store)
    starter.tick(bench.now)
    starter.tick(bench.advance(hours=3, minutes=30))
    assert bench.times("every") == ["02 12:00", "02 13:00", "02 14:00", "02 15:00"]
    assert bench.times("newest") == ["02 12:00", "02 15:00"]


def test_late_runs_are_left_out_where_the_schedule_says_so(bench):
    bench.save(flow(schedule=hourly(catch_up="all", skip_delayed_seconds=5400, start_at="2026-03-02T12:00:00Z")))
    RunStarter(bench.store).tick(bench.advance(hours=5))
    assert bench.times() == ["02 16:00", "02 17:00"]


def test_no_run_starts_after_the_end_of_the_schedule(bench):
    (workflow_id,) = bench.save(
        flow(schedule=hourly(catch_up="all", start_at="2026-03-02T12:00:00Z", end_at="2026-03-02T13:30:00Z"))
    )
    RunStarter(bench.store).tick(bench.advance(hours=5))
    assert bench.times() == ["02 12:00", "02 13:00"]
    assert bench.schedule(workflow_id).next_run_at is None


def test_time_is_left_out_while_an_earlier_run_is_going_if_the_schedule_says_so(bench):
    bench.save(flow(schedule=hourly(catch_up="all", overlap="skip", start_at="2026-03-02T12:00:00Z")))
    starter, agent = RunStarter(bench.store), bench.agent(lease=1e6)
    starter.tick(bench.now)
    starter.tick(bench.advance(hours=2))
    assert bench.times() == ["02 12:00"]
    bench.finish_everything(agent)
    starter.tick(bench.advance(hours=1))
    assert bench.times() == ["02 12:00", "02 15:00"]


def test_only_the_first_of_several_missed_times_starts_where_runs_may_not_overlap(bench):
    bench.save(flow(schedule=hourly(catch_up="all", overlap="skip", start_at="2026-03-02T12:00:00Z")))
    RunStarter(bench.store).tick(bench.advance(hours=3))
    assert bench.times() == ["02 12:00"]


def test_time_that_was_run_by_hand_counts_as_done(bench):
    (workflow_id,) = bench.save(flow(schedule=hourly(start_at="2026-03-02T13:00:00Z")))
    one = to_micros(datetime(2026, 3, 2, 13, tzinfo=UTC))
    bench.store.transact(lambda tx: create_run(tx, NewRun(workflow_id, "by hand", logical_at=one), bench.micros))
    RunStarter(bench.store).tick(bench.advance(hours=1))
    assert [row.key for row in bench.rows(tables.run)] == ["by hand"]
    assert bench.schedule(workflow_id).last_logical_at == one
    assert bench.schedule(workflow_id).next_run_at == one + 3600 * 1_000_000


def test_paused_workflow_starts_nothing_and_catches_up_when_it_goes_on(bench):
    (workflow_id,) = bench.save(
        flow(schedule=hourly(catch_up="all", start_at="2026-03-02T12:00:00Z"), is_paused_at_creation=True)
    )
    starter = RunStarter(bench.store)
    starter.tick(bench.advance(hours=1))
    assert bench.runs() == []
    assert starter.tick(bench.now) == 0, "a paused workflow is looked at once, not again and again"
    bench.store.transact(lambda tx: set_paused(tx, workflow_id, False))
    starter.tick(bench.now)
    assert bench.times() == ["02 12:00", "02 13:00"]


def test_unpaused_workflow_does_not_start_before_its_time(bench):
    (workflow_id,) = bench.save(flow(schedule=hourly(spec={"intervals": True}, start_at="2026-03-02T12:00:00Z")))
    bench.store.transact(lambda tx: set_paused(tx, workflow_id, True))
    bench.store.transact(lambda tx: set_paused(tx, workflow_id, False))
    RunStarter(bench.store).tick(bench.advance(minutes=59))
    assert bench.runs() == []


def test_day_of_the_time_change_has_each_wall_time_once(bench):
    # Clocks go from 02:00 to 03:00 in Berlin on 2026-03-29, so that 02:30 runs at 03:30 summer time (01:30 UTC).
    bench.save(
        flow(
            schedule=Schedule(
                type="cron", spec={"expression": "30 2 * * *"}, catch_up="all", start_at="2026-03-28T00:00:00Z"
            ),
            timezone="Europe/Berlin",
        )
    )
    starter = RunStarter(bench.store)
    bench.clock.advance(datetime(2026, 3, 28, 0, tzinfo=UTC) - bench.now)
    for _ in range(72):
        starter.tick(bench.advance(hours=1))
    assert bench.times() == ["28 01:30", "29 01:30", "30 00:30"]


def test_long_catch_up_waits_for_the_workflow_to_take_the_runs(bench):
    bench.save(
        flow(schedule=hourly(catch_up="all", start_at="2025-03-02T12:00:00Z"), max_active_runs=2), file="years.py"
    )
    starter, activator, agent = RunStarter(bench.store), RunActivator(bench.store), bench.agent(lease=1e6)
    for _ in range(5):
        starter.tick(bench.now)
    assert starter.tick(bench.now) == 0, "it rests until the workflow may have taken some"
    assert [state for _, state in bench.runs()] == ["running"] * 2 + ["queued"] * 14
    bench.finish_everything(agent)
    activator.tick(bench.now)
    starter.tick(bench.advance(seconds=1))
    states = [state for _, state in bench.runs()]
    assert (states.count("success"), states.count("running"), states.count("queued")) == (2, 2, 14)


def serve(starter, now):
    """Tick until nothing is due; how many schedules were served."""
    served = 0
    while batch := starter.tick(now):
        served += batch
    return served


def test_two_schedulers_share_the_work_and_start_nothing_twice(bench):
    for number in range(7):
        bench.save(flow(f"w{number}", schedule=hourly(catch_up="all", start_at="2026-03-02T12:00:00Z")))
    one, two = (RunStarter(bench.store, batch_size=2) for _ in range(2))
    for _ in range(4):
        bench.advance(hours=1)
        while one.tick(bench.now) + two.tick(bench.now):
            pass
    for number in range(7):
        assert bench.times(f"w{number}") == [f"02 {hour}:00" for hour in range(12, 17)]


def test_schedulers_in_threads_start_every_run_exactly_once(bench, prepared_url):
    names = [f"w{number}" for number in range(12)]
    for name in names:
        bench.save(flow(name, schedule=hourly(catch_up="all", start_at="2026-03-02T12:00:00Z")))
    now, errors = bench.advance(hours=5), []

    def schedule():
        store = Store(prepared_url)
        try:
            starter = RunStarter(store, batch_size=2, max_runs=2)
            while starter.tick(now) and len(errors) == 0:
                pass
        except Exception as error:
            errors.append(error)
        finally:
            store.dispose()

    threads = [threading.Thread(target=schedule) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    # The last one may have found everything locked by others who were not done yet.
    RunStarter(bench.store).tick(now)
    assert errors == []
    for name in names:
        assert bench.times(name) == [f"02 {hour}:00" for hour in range(12, 18)]


@pytest.mark.parametrize("dies_before_commit", [True, False])
def test_scheduler_that_dies_around_a_commit_loses_and_repeats_nothing(bench, monkeypatch, dies_before_commit):
    for number in range(5):
        bench.save(flow(f"w{number}", schedule=hourly(catch_up="all", start_at="2026-03-02T12:00:00Z")))
    now, crashes = bench.advance(hours=2), 0
    while True:
        with monkeypatch.context() as patch:
            patch.setattr(bench.store, "transact", dying(bench.store, dies_before_commit, after=crashes % 3))
            try:
                if not serve(RunStarter(bench.store, batch_size=1, max_runs=2), now):
                    break
            except Crash:
                crashes += 1
        if dies_before_commit and crashes > 20:
            serve(RunStarter(bench.store), now)
            break
    assert crashes > 2
    for number in range(5):
        assert bench.times(f"w{number}") == ["02 12:00", "02 13:00", "02 14:00"]
        states = [state for _, state in bench.runs(f"w{number}")]
        assert states == ["running"] * 3


def dying(store: Store, before_commit: bool, after: int):
    """`store.transact` of a process that dies in, or right after, its n-th transaction."""
    transact, count = store.transact, 0

    def until_death(work):
        nonlocal count
        count += 1
        if count <= after:
            return transact(work)

        def die(tx):
            work(tx)
            raise Crash

        if before_commit:
            return transact(die)
        transact(work)
        raise Crash

    return until_death


def test_run_and_first_tasks_are_committed_together_with_the_new_place(bench):
    """What a crash could tear apart is in one transaction: no run without a moved schedule, no schedule without run."""
    bench.save(flow(schedule=hourly(start_at="2026-03-02T13:00:00Z")))
    before = bench.store.database.commits
    RunStarter(bench.store).tick(bench.advance(hours=1))
    assert bench.store.database.commits - before == 1
    with bench.store.read() as tx:
        states = [row.state for row in tx.execute(select(tables.task.c.state).where(tables.task.c.key == "a"))]
    assert states == ["scheduled"]


def test_schedule_that_cannot_be_read_does_not_keep_others_from_starting(bench, caplog):
    bad, _ = bench.save(flow("bad", schedule=hourly()), flow("good", schedule=hourly()))
    with bench.store.begin() as tx:
        tx.connection.exec_driver_sql(
            "UPDATE workflow_version SET definition = replace(definition, '0 * * * *', '0 77 * * *')"
            f" WHERE workflow_id = {bad}"
        )
    RunStarter(bench.store).tick(bench.advance(hours=1))
    assert len(bench.times("good")) == 1
    assert bench.times("bad") == []
    assert "could not tell when workflow" in caplog.text


def test_many_due_schedules_are_started_in_small_transactions(bench):
    bench.save(*(flow(f"w{number}", schedule=hourly(start_at="2026-03-02T13:00:00Z")) for number in range(30)))
    before = bench.store.database.commits
    assert serve(RunStarter(bench.store, batch_size=7), bench.advance(hours=1)) == 30
    assert bench.store.database.commits - before == 5
    assert len(bench.runs()) == 30


def test_a_burst_costs_one_statement_for_each_schedule(bench):
    burst = [flow(f"w{number}", schedule=hourly(start_at="2026-03-02T13:00:00Z")) for number in range(100)]
    bench.save(*burst)
    starter, database = RunStarter(bench.store), bench.store.database
    bench.advance(hours=1)
    statements, commits = database.statements, database.commits
    assert starter.tick(bench.now) == 100
    assert (database.commits - commits, len(bench.runs())) == (1, 100)
    # It looks for runs that wait and counts those that run; everything else is once for all.
    assert database.statements - statements <= 100 + 16


def test_once_is_once(bench):
    bench.save(flow(schedule=Schedule(type="once")))
    starter = RunStarter(bench.store)
    for _ in range(3):
        starter.tick(bench.advance(hours=1))
    assert len(bench.runs()) == 1


def test_saved_node_is_what_runs(bench: Bench):
    bench.save(flow("w", node("a"), node("b", "a"), schedule=hourly(start_at="2026-03-02T13:00:00Z")))
    RunStarter(bench.store).tick(bench.advance(hours=1))
    agent = bench.agent(lease=1e6)
    bench.finish_everything(agent)
    assert [state for _, state in bench.runs()] == ["success"]
