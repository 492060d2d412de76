"""When a workflow runs next, in words and times; and the choices of `runs` and `trigger`."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from headrace.actions.assets import emit, show_assets, show_events
from headrace.actions.pause import pause
from headrace.actions.trigger import trigger
from headrace.actions.upcoming import upcoming
from headrace.clock import to_micros
from headrace.definition import AssetUse, Node, Schedule, Workflow
from headrace.errors import NotFoundError, StateError, UsageError
from headrace.projects import ParsedFile
from headrace.projects.saving import save_parsed
from headrace.scheduler import RunStarter
from headrace.store import RunChoice, choose_runs


def save(world, schedule, name="flow", **fields):
    nodes = (Node(key="", kind="group"), Node(key="a", parent="", operator="work"))
    workflow = Workflow(name=name, language="python", nodes=nodes, schedule=schedule, **fields)
    parsed = ParsedFile(file=f"{name}.py", digest=name, workflows=(workflow,))
    (saved,) = save_parsed(world.store, "p", Path("/p"), [parsed], world.clock.now())
    assert saved.error is None, saved.error


def show(world, name="flow", count=3):
    found = upcoming(world.store, world.clock, name, count)
    return found.schedule, found.reason, [one.logical_time.strftime("%d %H:%M") for one in found.times]


def test_next_times_follow_the_clock(world):
    save(world, Schedule(type="cron", spec={"expression": "0 3 * * *", "timezone": "Asia/Tokyo"}))
    assert show(world) == (
        "cron 0 3 * * * in Asia/Tokyo",
        "the clock starts it at 2026-02-03 18:00:00Z",
        ["03 18:00", "04 18:00", "05 18:00"],
    )
    pause(world.store, "flow")
    assert show(world)[1] == "it is paused: no run starts until it is unpaused"


@pytest.mark.parametrize(
    ("schedule", "words", "reason"),
    [
        (None, "none", "it has no schedule: somebody starts it, or nothing does"),
        (
            Schedule(type="continuous", overlap="wait"),
            "continuous",
            "the next run starts when the one before has ended",
        ),
        (
            Schedule(type="cron", spec={"expression": "0 3 * * *"}, end_at="2026-01-01T00:00:00Z"),
            "cron 0 3 * * * in UTC",
            "its schedule has come to its end",
        ),
        (
            Schedule(type="interval", spec={"months": 1}, start_at="2026-02-10T00:00:00Z"),
            "every 1 months",
            "the clock starts it at 2026-02-10 00:00:00Z",
        ),
        (
            Schedule(type="custom", spec={"class": "plugins.Workdays", "data": {}}),
            "the timetable Workdays",
            "its timetable is about to be asked for the next time",
        ),
    ],
)
def test_every_kind_of_schedule_is_explained(world, schedule, words, reason):
    save(world, schedule)
    assert show(world)[:2] == (words, reason)


def test_assets_that_are_missing_are_named(world):
    when = {"all": [{"asset": "a"}, {"any": [{"asset": "b"}, {"alias": "c"}]}]}
    uses = tuple(AssetUse(name=name, role="schedule", uri=name) for name in "ab")
    save(world, Schedule(type="assets", spec={"when": when}), assets=uses)
    assert show(world)[:2] == ("assets a, b, c", "it waits for events of `a`, `b`, `c`")
    emit(world.store, world.clock, "a", {"rows": 1})
    RunStarter(world.store).tick(world.clock.now())
    assert show(world)[1] == "it waits for events of `b`, `c`; 1 have come"
    emit(world.store, world.clock, "b", {})
    RunStarter(world.store).tick(world.clock.now())
    with world.store.read() as tx:
        (run,) = choose_runs(tx, RunChoice(type="asset_triggered"))
    assert run.state == "running"
    assert [view.users("schedule") for view in show_assets(world.store)] == [["flow"], ["flow"]]
    assert [(event.asset, event.extra) for event in show_events(world.store, "a")] == [("a", '{"rows":1}')]


def test_event_of_an_unknown_asset_is_refused_unless_it_may_be_new(world):
    save(world, Schedule(type="assets", spec={"when": {"asset": "orders"}}), assets=(
        AssetUse(name="orders", role="schedule", uri="orders"),
    ))  # fmt: skip
    with pytest.raises(NotFoundError, match="there is no asset `order`") as caught:
        emit(world.store, world.clock, "order", {})
    assert caught.value.hint == "did you mean `orders`?"
    assert emit(world.store, world.clock, "order", {}, may_be_new=True).asset == "order"


def test_runs_are_chosen_by_state_type_and_time(world):
    world.save(Node(key="a", operator="python"), name="flow")
    for day in (1, 2, 3):
        world.trigger(session=f"2026-01-0{day}", run_key=f"r{day}")
    world.save(Node(key="a", operator="python"), name="other")
    world.trigger("other", session="2026-01-02")

    def keys(**choice):
        with world.store.read() as tx:
            return [run.key for run in choose_runs(tx, RunChoice(**choice)) if run.workflow == "flow"]

    second = to_micros(datetime(2026, 1, 2, tzinfo=UTC))
    assert keys() == ["r3", "r2", "r1"]
    assert keys(since=second) == ["r3", "r2"]
    assert keys(until=second) == ["r2", "r1"]
    assert keys(state="queued") == []
    assert keys(type="manual", since=second, until=second) == ["r2"]


def test_a_run_may_have_a_note_and_no_time(world):
    world.save(Node(key="a", operator="python"))
    first, second = (trigger(world.store, world.clock, "flow", session="none", note="why") for _ in range(2))
    assert (first.logical_at, first.note, first.state) == (None, "why", "running")
    assert first.key.startswith("manual__2026-02-03T04:05:06+00:00_")
    assert first.key != second.key


@pytest.mark.parametrize("key", ["a/b", "a b", "a..b", "", "scheduled__x", "backfill__x"])
def test_names_of_runs_that_could_be_mistaken_are_refused(world, key):
    world.save(Node(key="a", operator="python"))
    with pytest.raises(UsageError):
        trigger(world.store, world.clock, "flow", run_key=key)


def test_second_run_of_a_name_is_refused(world):
    world.save(Node(key="a", operator="python"))
    trigger(world.store, world.clock, "flow", run_key="r", session="none")
    with pytest.raises(StateError, match=r"already has a run `r`\n"):
        trigger(world.store, world.clock, "flow", run_key="r", session="none")
