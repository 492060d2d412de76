"""Times in the past become runs: the right ones, in order, within a limit of their own."""

from __future__ import annotations

import pytest

from headrace.actions.backfill import (
    BackfillRequest,
    cancel_backfill,
    create_backfill,
    pause_backfill,
    unpause_backfill,
)
from headrace.actions.pause import pause, unpause
from headrace.actions.retry import retry
from headrace.actions.start import Wanted, start
from headrace.actions.why import why
from headrace.definition import Node, Schedule
from headrace.errors import NotFoundError, StateError, UsageError
from headrace.scheduler import RunActivator
from headrace.store import list_backfills, list_runs

HOURLY = Schedule(type="cron", spec={"expression": "0 * * * *"}, start_at="2026-02-03T00:00:00Z")


def save(world, **given):
    given = {"schedule": HOURLY, **given}
    world.save(Node(key="a", operator="python"), **given)


def fill(world, start="2026-02-03T00:00", end="2026-02-03T03:00", **given):
    return create_backfill(world.store, world.clock, BackfillRequest(workflow="flow", start=start, end=end, **given))


def runs(world):
    """(hour, state) of the runs, in the order of their creation."""
    with world.store.read() as tx:
        found = list_runs(tx)[::-1]
    return [((run.logical_at // 3_600_000_000) % 24, run.state) for run in found]


def outcomes(done):
    return [one.outcome for one in done.times]


def finish_one(world, outcome="success"):
    """Run the next task to its end. Returns the hour of its run."""
    assert world.claim() == ["a"]
    attempt_id = world.claims["a"].attempt_id
    world.finish("a", outcome)
    with world.store.read() as tx:
        (hour,) = [(run.logical_at // 3_600_000_000) % 24 for run in list_runs(tx) if run.attempt_id == attempt_id]
    return hour


def test_every_time_of_the_range_gets_a_run_within_the_limit_of_the_backfill(world):
    save(world, max_active_runs=1)
    done = fill(world, max_active_runs=2, params={"n": 1})
    assert outcomes(done) == ["created"] * 4
    assert runs(world) == [(0, "running"), (1, "running"), (2, "queued"), (3, "queued")]
    assert (done.backfill.state, done.backfill.queued, done.backfill.running) == ("running", 2, 2)
    with world.store.read() as tx:
        assert {(run.type, run.params) for run in list_runs(tx)} == {("backfill", '{"n":1}')}
        assert list_runs(tx)[-1].key == "backfill__2026-02-03T00:00:00+00:00"


def test_other_runs_of_the_workflow_do_not_count_for_the_backfill_nor_it_for_them(world):
    save(world, max_active_runs=1)
    fill(world, max_active_runs=1)
    assert world.trigger().state == "running"
    assert [state for _, state in runs(world)] == ["running", "queued", "queued", "queued", "running"]


def test_times_that_are_not_over_and_times_outside_of_the_range_are_left_out(world):
    save(world)
    assert len(fill(world, "2026-02-03T02:30", "2026-02-03T23:00", is_dry_run=True).times) == 2
    assert runs(world) == []


def test_a_range_may_begin_before_the_schedule_and_be_given_by_a_count(world):
    save(world)
    done = fill(world, "2026-02-02T22:00", None, count=3, is_dry_run=True)
    assert [one.slot.logical_time.strftime("%d %H") for one in done.times] == ["02 22", "02 23", "03 00"]


def test_backwards_means_newest_first(world):
    save(world)
    world.join()
    fill(world, is_backwards=True, max_active_runs=1)
    assert runs(world) == [(3, "running"), (2, "queued"), (1, "queued"), (0, "queued")]
    assert [finish_one(world)] == [3]


@pytest.mark.parametrize(
    ("reprocess", "expected"),
    [
        ("none", ["exists", "exists", "created", "in_flight"]),
        ("failed", ["exists", "again", "created", "in_flight"]),
        ("completed", ["again", "again", "created", "in_flight"]),
    ],
)
def test_what_has_a_run_already_is_run_again_only_if_asked_for(world, reprocess, expected):
    save(world)
    world.join()
    for hour, outcome in ((0, "success"), (1, "failed")):
        world.trigger(session=f"2026-02-03T0{hour}:00", run_key=f"r{hour}")
        world.claim()
        world.finish("a", outcome)
    world.trigger(session="2026-02-03T03:00", run_key="r3")
    assert outcomes(fill(world, reprocess=reprocess, is_dry_run=True)) == expected
    done = fill(world, reprocess=reprocess)
    assert outcomes(done) == expected
    with world.store.read() as tx:
        types = {run.key: (run.type, run.attempt_number) for run in list_runs(tx)}
    assert types["r1"] == (("backfill", 2) if expected[1] == "again" else ("manual", 1))
    assert types["r3"] == ("manual", 1)


def test_there_is_one_backfill_of_a_workflow_at_a_time(world):
    save(world)
    first = fill(world)
    with pytest.raises(StateError, match="already has a backfill"):
        fill(world, reprocess="completed")
    cancel_backfill(world.store, world.clock, first.backfill.id)


def test_a_paused_backfill_starts_no_more_runs_until_it_goes_on(world):
    save(world)
    world.join()
    backfill = fill(world, max_active_runs=1).backfill
    assert pause_backfill(world.store, backfill.id).state == "paused"
    assert finish_one(world) == 0
    assert RunActivator(world.store).tick(world.clock.now()) == 0
    assert world.claim() == []
    row = unpause_backfill(world.store, world.clock, backfill.id)
    assert (row.state, row.running, row.queued) == ("running", 1, 2)
    assert finish_one(world) == 1
    assert RunActivator(world.store).tick(world.clock.now()) == 1
    assert finish_one(world) == 2


def test_canceling_ends_what_has_not_started(world):
    save(world)
    world.join()
    backfill = fill(world, max_active_runs=1).backfill
    row = cancel_backfill(world.store, world.clock, backfill.id)
    assert (row.state, row.running, row.queued, row.failed, row.canceled) == ("canceled", 1, 0, 0, 3)
    assert finish_one(world) == 0
    assert [state for _, state in runs(world)] == ["success", "canceled", "canceled", "canceled"]
    with pytest.raises(StateError, match="it has ended"):
        cancel_backfill(world.store, world.clock, backfill.id)
    with world.store.read() as tx:
        assert [row.state for row in list_backfills(tx)] == ["canceled"]


def test_a_canceled_backfill_holds_no_run_back_that_is_retried(world):
    save(world)
    world.join()
    backfill = fill(world, max_active_runs=1).backfill
    pause_backfill(world.store, backfill.id)
    assert not cancel_backfill(world.store, world.clock, backfill.id).is_paused
    with pytest.raises(StateError, match="cannot pause backfill 1: it was canceled"):
        pause_backfill(world.store, backfill.id)
    finish_one(world)
    assert retry(world.store, world.clock, "2").state == "running"
    assert finish_one(world) == 1


@pytest.mark.parametrize("again", ["retry", "start"])
def test_a_backfill_that_has_ended_while_paused_holds_no_run_back_that_is_run_again(world, again):
    save(world)
    world.join()
    backfill = fill(world, end="2026-02-03T00:00").backfill
    pause_backfill(world.store, backfill.id)
    finish_one(world, "failed")
    if again == "retry":
        run = retry(world.store, world.clock, "1")
    else:
        run = start(world.store, world.clock, Wanted("shop", "flow", "2026-02-03T00:00", attempt_name="again")).run
    assert run.state == "running"


def test_a_paused_backfill_holds_a_run_back_that_is_retried_while_others_wait(world):
    save(world)
    world.join()
    backfill = fill(world, max_active_runs=1).backfill
    pause_backfill(world.store, backfill.id)
    finish_one(world, "failed")
    assert retry(world.store, world.clock, "1").state == "queued"


def test_a_paused_workflow_does_not_start_its_backfill(world):
    save(world)
    pause(world.store, "flow")
    fill(world)
    assert {state for _, state in runs(world)} == {"queued"}
    unpause(world.store, world.clock, "flow")
    assert {state for _, state in runs(world)} == {"running"}


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"start": "2026-02-03T02:00", "end": "2026-02-03T01:00"}, "ends before it begins"),
        ({"start": "1900-01-01", "end": "2026-01-01"}, "more than 10000 runs"),
    ],
)
def test_a_range_that_makes_no_sense_is_refused(world, given, sentence):
    save(world)
    with pytest.raises(UsageError, match=sentence):
        fill(world, **given)


def test_the_words_that_are_offered_for_a_time_are_those_that_are_taken(world):
    save(world)
    with pytest.raises(UsageError, match="got: `yesterday`") as caught:
        fill(world, start="yesterday")
    assert "`daily`" in caught.value.hint and "`none`" not in caught.value.hint
    with pytest.raises(UsageError, match="got: `yesterday`") as caught:
        world.trigger(session="yesterday")
    assert "`none`" in caught.value.hint


def test_a_workflow_without_times_cannot_be_filled(world):
    save(world, schedule=None)
    with pytest.raises(UsageError, match="no schedule with times"):
        fill(world)
    with pytest.raises(NotFoundError, match="there is no backfill 7"):
        pause_backfill(world.store, 7)


def test_why_speaks_of_the_backfill_that_a_run_waits_for(world):
    save(world, max_active_runs=1)
    backfill = fill(world, max_active_runs=1).backfill
    world.join(kind="scheduler", name="s")
    with world.store.read() as tx:
        last = list_runs(tx)[0].id

    def sentence():
        (reason,) = why(world.store, world.clock, str(last)).reasons
        return reason.sentence

    assert "max_active_runs of backfill 1 is 1 and run 1 is not done" in sentence()
    pause_backfill(world.store, backfill.id)
    assert "its backfill 1 is paused" in sentence()
