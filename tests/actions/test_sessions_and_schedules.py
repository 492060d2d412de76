"""One run for each time, attempts by name, and schedules that people switch off, on and ahead."""

from __future__ import annotations

import pytest

from headrace.actions.finding import find_run
from headrace.actions.retry import Again, retry
from headrace.actions.schedules import Later, disable, enable, find_schedules, reschedule
from headrace.actions.start import Wanted, start
from headrace.clock import from_micros, to_micros
from headrace.definition import Node, Schedule
from headrace.errors import NotFoundError, StateError, UsageError
from headrace.projects.saving import schedule_digest, schedule_row
from headrace.scheduler import RunStarter
from headrace.store import (
    Definitions,
    current_version_of,
    list_attempts,
    list_runs,
    save_schedule,
    workflows_named,
)
from headrace.timetable import timetable_for

DAILY = Schedule(
    type="cron", spec={"expression": "0 0 * * *", "semantics": "digdag", "delay_seconds": 3600}, catch_up="all"
)
WANTED = Wanted("shop", "flow", "2026-01-31 10:00:00")


def node(key, *upstream):
    return Node(key=key, upstream=upstream, operator="work")


def begin(world, **changes):
    return start(world.store, world.clock, WANTED._replace(**changes))


def work(world, *failing):
    ran = []
    while names := world.claim(limit=10):
        for name in names:
            ran.append(name)
            world.finish(name, "failed" if name in failing else "success")
    return ran


@pytest.fixture
def shop(world):
    world.save(node("a"), node("b", "a"), node("c", "b"))
    world.join(slots=10)
    return world


def test_there_is_one_run_for_each_time(shop):
    run, attempt = begin(shop, params={"n": 1})
    assert (run.state, attempt.label, attempt.params) == ("running", f"{run.id}.1", {"n": 1})
    with pytest.raises(StateError, match=rf"was already started for this time: attempt {run.id}\.1 is `running`"):
        begin(shop)
    assert begin(shop, session="2026-01-31 10:00:01").run.id != run.id


def test_time_is_cut_to_seconds(shop):
    run, _ = begin(shop, session="now")
    assert run.logical_at % 1_000_000 == 0


def test_another_attempt_needs_another_name(shop):
    run, _ = begin(shop)
    with pytest.raises(StateError, match="has not ended yet"):
        begin(shop, attempt_name="second")
    work(shop)
    again, attempt = begin(shop, attempt_name="second", params={"m": 2})
    assert (again.id, attempt.label, attempt.name, attempt.params) == (run.id, f"{run.id}.2", "second", {"m": 2})
    assert work(shop) == ["a", "b", "c"], "everything runs again"
    with pytest.raises(StateError, match="called `second` is `success`"):
        begin(shop, attempt_name="second")


def test_dry_run_leaves_nothing(shop):
    started = start(shop.store, shop.clock, WANTED, is_dry=True)
    assert started.run.workflow == "flow"
    with shop.store.read() as tx:
        assert list_runs(tx) == []


def test_what_is_not_there_is_named(shop):
    with pytest.raises(NotFoundError, match="there is no project `shap`") as caught:
        begin(shop, project="shap")
    assert caught.value.hint == "did you mean `shop`?"
    with pytest.raises(NotFoundError, match="project `shop` has no workflow `flaw`") as caught:
        begin(shop, workflow="flaw")
    assert caught.value.hint == "did you mean `flow`?"
    with pytest.raises(NotFoundError, match=r"project `shop` has no revision `1\.0`"):
        begin(shop, revision="1.0")


def test_attempts_are_named_by_run_and_number(shop):
    run, _ = begin(shop)
    work(shop, "b")
    retry(shop.store, shop.clock, str(run.id))
    with shop.store.read() as tx:
        first, second = find_run(tx, f"{run.id}.1"), find_run(tx, f"{run.id}.2")
        assert (first.state, second.state) == ("failed", "running")
        assert first.attempt_id != second.attempt_id
        with pytest.raises(NotFoundError, match=rf"there is no attempt {run.id}\.3"):
            find_run(tx, f"{run.id}.3")


def test_retry_from_a_task_carries_over_what_comes_before_it(shop):
    run, _ = begin(shop)
    work(shop)
    retry(shop.store, shop.clock, str(run.id), Again(resumes_from="b"))
    assert work(shop) == ["b", "c"]


def test_retry_from_a_task_needs_success_before_it(shop):
    run, _ = begin(shop)
    work(shop, "a")
    with pytest.raises(StateError, match=r"cannot resume run .* from `c`: `a` comes before it and is `failed`"):
        retry(shop.store, shop.clock, str(run.id), Again(resumes_from="c"))


def test_retry_keeps_names_and_parameters(shop):
    run, _ = begin(shop, params={"n": 1, "m": 1})
    work(shop, "a")
    retry(shop.store, shop.clock, str(run.id), Again(name="x", params={"m": 2}))
    work(shop, "a")
    with pytest.raises(StateError, match="already has an attempt called `x`"):
        retry(shop.store, shop.clock, str(run.id), Again(name="x"))
    retry(shop.store, shop.clock, str(run.id))
    with shop.store.read() as tx:
        assert [(one.name, one.params) for one in list_attempts(tx, run.id)] == [
            ("", {"n": 1, "m": 2}), ("x", {"n": 1, "m": 2}), ("", {"n": 1, "m": 1}),
        ]  # fmt: skip


def test_retry_keeps_the_version_if_asked(shop):
    run, first = begin(shop)
    work(shop, "a")
    with shop.store.begin() as tx:
        tx.connection.exec_driver_sql("UPDATE revision SET digest = 'old'")
    shop.save(node("a"), node("z", "a"))
    retry(shop.store, shop.clock, str(run.id), Again(keeps_version=True))
    assert work(shop, "a") == ["a"]
    retry(shop.store, shop.clock, str(run.id))
    assert work(shop) == ["a", "z"]
    with shop.store.read() as tx:
        newest, kept, _ = list_attempts(tx, run.id)
    assert kept.version_id == first.version_id != newest.version_id


# ---- schedules -----------------------------------------------------------------------------------------------------


@pytest.fixture
def scheduled(world):
    world.save(node("a"), schedule=DAILY, timezone="Asia/Tokyo")
    with world.store.begin() as tx:
        row = workflows_named(tx, "flow")[0]
        workflow = tx.shared(Definitions).version(tx, current_version_of(tx, row.id)).workflow
        slot = timetable_for(DAILY, "Asia/Tokyo").first(world.clock.now())
        save_schedule(tx, schedule_row(row.id, schedule_digest(workflow), slot, None))
    return world


def at(row):
    return from_micros(row.logical_at).isoformat()


def only(world):
    with world.store.read() as tx:
        (row,) = find_schedules(tx, "shop", "flow")
        assert find_schedules(tx, "shop") == find_schedules(tx, str(row.id)) == [row]
    return row


def test_disabled_schedule_starts_nothing_and_then_catches_up(scheduled):
    assert at(only(scheduled)) == "2026-02-03T15:00:00+00:00"
    (row,) = disable(scheduled.store, scheduled.clock, "shop")
    assert (row.disabled_at, row.run_at) == (scheduled.now, None)
    scheduled.pass_seconds(3 * 86_400)
    starter = RunStarter(scheduled.store)
    assert starter.tick(scheduled.clock.now()) == 0
    (row,) = enable(scheduled.store, "shop", "flow")
    assert row.disabled_at is None
    starter.tick(scheduled.clock.now())
    with scheduled.store.read() as tx:
        assert len(list_runs(tx)) == 3


def test_enabled_schedule_is_not_early(scheduled):
    disable(scheduled.store, scheduled.clock, "shop")
    enable(scheduled.store, "shop")
    scheduled.pass_seconds(11 * 3600)
    RunStarter(scheduled.store).tick(scheduled.clock.now())
    with scheduled.store.read() as tx:
        assert list_runs(tx) == [], "its time has come, but the run is due an hour later"


@pytest.mark.parametrize(
    ("later", "expected"),
    [
        (Later(skip=2), "2026-02-05T15:00:00+00:00"),
        (Later(to="2026-02-10 00:30:00"), "2026-02-09T15:00:00+00:00"),
        (Later(to="2026-02-10 01:00:01"), "2026-02-10T15:00:00+00:00"),
        (Later(to="2626-02-10 01:00:01"), "2626-02-10T15:00:00+00:00"),
    ],
)
def test_schedule_is_moved_ahead(scheduled, later, expected):
    rehearsed = reschedule(scheduled.store, scheduled.clock, "shop", "flow", later, is_dry=True)
    assert at(rehearsed) == expected
    assert at(only(scheduled)) == "2026-02-03T15:00:00+00:00", "a dry run changes nothing"
    assert at(reschedule(scheduled.store, scheduled.clock, "shop", "flow", later)) == expected


def test_next_run_may_be_due_at_another_time(scheduled):
    later = Later(skip=1, run_at="2026-02-20 12:00:00")
    row = reschedule(scheduled.store, scheduled.clock, "shop", None, later)
    assert row.run_at == to_micros(from_micros(0).replace(year=2026, month=2, day=20, hour=3))


def test_schedule_is_never_moved_back(scheduled):
    with pytest.raises(StateError, match="can only be moved ahead"):
        reschedule(scheduled.store, scheduled.clock, "shop", "flow", Later(to="2026-01-01"))
    with pytest.raises(UsageError, match="either how many times to skip or the time"):
        reschedule(scheduled.store, scheduled.clock, "shop", "flow", Later())


def test_workflow_without_a_schedule_says_so(shop):
    with pytest.raises(NotFoundError, match="workflow `flow` has no schedule"):
        disable(shop.store, shop.clock, "shop", "flow")
    with pytest.raises(NotFoundError, match="there is no schedule 77"):
        enable(shop.store, "77")
