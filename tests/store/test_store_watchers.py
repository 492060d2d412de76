"""Assets are watched as long as something that is not paused is scheduled on them, once for all that name them."""

from __future__ import annotations

import msgspec
import pytest
from store_bench import SECOND, flow, node

from headrace.clock import from_micros
from headrace.definition import AssetUse, Schedule, Watcher
from headrace.handoff import Fired, TaskError
from headrace.projects import ParsedFile
from headrace.projects.saving import save_parsed
from headrace.store import (
    Store,
    claim_triggers,
    emit_events,
    emit_watched,
    forget_agents,
    has_free_triggers,
    has_watchers_to_change,
    keep_watchers,
    list_asset_events,
    queued_events,
    register,
    resign,
    set_paused,
    watcher_names,
    watchers,
    watching_workflow,
)

FILES = Watcher(name="files", trigger="a.Files", arguments={"path": "/x"})
QUEUE = Watcher(name="queue", trigger="a.Queue")


class Watching:
    """Workflows that are scheduled on `orders`."""

    def __init__(self, bench, folder):
        self.bench = bench
        self.folder = folder
        self.ids = {}
        self.triggerer_id = 0

    def save(self, name, *watchers, digest="1"):
        use = AssetUse(name="orders", role="schedule", uri="s3://orders", watchers=watchers)
        schedule = Schedule(type="assets", spec={"when": {"asset": "orders"}})
        one = flow(node("a"), name=name, assets=(use,), schedule=schedule)
        parsed = ParsedFile(file=f"{name}.py", digest=digest, workflows=(one,))
        (saved,) = save_parsed(self.bench.store, "p", self.folder, [parsed], from_micros(self.bench.now))
        self.ids[name] = saved.workflows[0].id

    def pause(self, name, is_paused=True):
        self.bench.store.transact(lambda tx: set_paused(tx, self.ids[name], is_paused))

    def keep(self):
        """How many watchers began or ended."""
        with self.bench.store.read() as tx:
            is_worth_while = has_watchers_to_change(tx)
        changed = self.bench.store.transact(lambda tx: keep_watchers(tx, self.bench.now))
        assert is_worth_while == bool(changed)
        return changed

    def claim(self):
        """What is watched, taken from whoever had it by a new triggerer."""
        self.bench.now += 20 * SECOND
        self.triggerer_id = self.bench.store.transact(
            lambda tx: register(
                tx, kind="triggerer", name="t", place="here", pid=1, slots=9, queues=(), now=self.bench.now,
                lease_micros=15 * SECOND,
            )
        )  # fmt: skip
        claimed = self.bench.store.transact(lambda tx: claim_triggers(tx, self.triggerer_id, 9, self.bench.now))
        return {one.path: one for one in claimed}

    def tell(self, *told, by=None):
        """How many of these updated their assets."""
        agent_id = by or self.triggerer_id
        return self.bench.store.transact(lambda tx: emit_watched(tx, told, agent_id, self.bench.now))

    def payloads(self):
        """What was told of `orders`, oldest first."""
        with self.bench.store.read() as tx:
            events = list_asset_events(tx, asset="orders")
        return [msgspec.json.decode(event.extra)["payload"] for event in reversed(events)]


@pytest.fixture
def watching(bench, tmp_path):
    return Watching(bench, tmp_path)


def test_a_watcher_that_several_workflows_name_runs_once(watching):
    watching.save("one", FILES)
    watching.save("two", FILES, QUEUE)
    assert watching.keep() == 2
    assert watching.keep() == 0
    claimed = watching.claim()
    assert sorted(claimed) == ["a.Files", "a.Queue"]
    files = claimed["a.Files"]
    assert (files.asset, files.arguments, files.task_id, files.is_given_up) == ("orders", {"path": "/x"}, 0, False)
    with watching.bench.store.read() as tx:
        assert watching_workflow(tx, files.workflow_id).workflow.name == "one"
        assert watcher_names(tx, ["orders"]) == {"orders": ["files", "queue"]}


def test_a_private_triggerer_watches_nothing_and_a_lost_one_is_followed_by_the_next(watching):
    watching.save("one", FILES)
    watching.keep()
    with watching.bench.store.read() as tx:
        assert not has_free_triggers(tx, watching.bench.now, {1})
        assert has_free_triggers(tx, watching.bench.now)
    first = watching.claim()["a.Files"]
    assert watching.claim()["a.Files"] == first


def test_it_is_watched_until_the_last_that_waits_for_it_is_paused(watching):
    watching.save("one", FILES)
    watching.save("two")
    watching.keep()
    watching.pause("one")
    assert watching.keep() == 0
    watching.pause("two")
    assert watching.keep() == 1
    assert watching.claim() == {}
    watching.pause("one", is_paused=False)
    assert watching.keep() == 1


def test_a_changed_watcher_takes_the_place_of_the_old_one(watching):
    watching.save("one", FILES)
    watching.keep()
    watching.save("one", QUEUE, digest="2")
    assert watching.keep() == 2
    assert list(watching.claim()) == ["a.Queue"]
    watching.save("one", digest="3")
    assert watching.keep() == 1


def test_every_event_updates_the_asset_and_a_failure_or_an_old_watcher_does_not(watching):
    watching.save("one", FILES)
    watching.keep()
    trigger_id = watching.claim()["a.Files"].id
    told = [
        Fired(trigger_id=trigger_id, number=1, event=1),
        Fired(trigger_id=trigger_id, number=2, event={"n": 2}),
        Fired(trigger_id=trigger_id, number=3, error=TaskError(type="E", message="no")),
        Fired(trigger_id=trigger_id + 1000, number=4, event=3),
    ]
    assert watching.tell(*told) == 2
    with watching.bench.store.read() as tx:
        events = list_asset_events(tx, asset="orders")
        assert len(queued_events(tx, watching.ids["one"])) == 2
    assert [event.extra for event in events] == [
        '{"from_trigger":true,"payload":{"n":2}}',
        '{"from_trigger":true,"payload":1}',
    ]
    watching.pause("one")
    watching.keep()
    assert watching.tell(Fired(trigger_id=trigger_id, number=5, event=4)) == 0


@pytest.fixture
def fired(watching):
    """Makes events of one watcher, each with a number and a payload."""
    watching.save("one", FILES)
    watching.keep()
    trigger_id = watching.claim()["a.Files"].id
    return lambda number, event: Fired(trigger_id=trigger_id, number=number, event=event)


def test_an_event_that_is_told_again_updates_the_asset_once(watching, fired):
    assert watching.tell(fired(1, "a"), fired(2, "b")) == 2
    assert watching.tell(fired(1, "a"), fired(2, "b"), fired(3, "c")) == 1
    assert watching.tell(fired(3, "c")) == 0
    assert watching.payloads() == ["a", "b", "c"]


def test_each_triggerer_counts_its_own_events(watching, fired):
    """Also those that one has to tell which lost the watcher to another one."""
    first = watching.triggerer_id
    watching.tell(fired(1, "a"), fired(2, "b"))
    watching.claim()
    watching.tell(fired(1, "c"))
    watching.tell(fired(2, "b"), fired(3, "d"), by=first)
    watching.tell(fired(1, "c"), fired(2, "e"))
    assert watching.payloads() == ["a", "b", "c", "d", "e"]


def test_a_triggerer_that_nobody_remembers_is_heard(watching, fired):
    late = watching.triggerer_id
    watching.claim()
    with watching.bench.store.begin() as tx:
        resign(tx, late, watching.bench.now)
        forget_agents(tx, watching.bench.now)
    watching.tell(fired(1, "a"), by=late)
    assert watching.payloads() == ["a"]


def test_an_event_that_is_told_again_while_the_first_commit_is_under_way_updates_the_asset_once(
    watching, fired, monkeypatch
):
    """A server may still be busy with a commit whose connection has broken."""
    if watching.bench.url.startswith("sqlite"):
        pytest.skip("SQLite has one writer")
    first, told = Store(watching.bench.url), [fired(1, "a")]

    def overtaken(tx, *rest):
        monkeypatch.setattr(watchers, "emit_events", emit_events)
        first.transact(lambda tx: emit_watched(tx, told, watching.triggerer_id, watching.bench.now))
        return emit_events(tx, *rest)

    monkeypatch.setattr(watchers, "emit_events", overtaken)
    assert watching.tell(*told) == 0
    first.dispose()
    assert watching.payloads() == ["a"]
