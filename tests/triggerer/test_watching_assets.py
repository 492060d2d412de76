"""A triggerer runs the watchers of assets beside the triggers of tasks, each event once and again and again."""

from __future__ import annotations

import os
import signal

import pytest
from waiting_tasks import step_until

from headrace.definition import AssetUse, Node, Schedule, Watcher, Workflow
from headrace.errors import StoreUnreachableError
from headrace.projects import ParsedFile
from headrace.projects.saving import save_parsed
from headrace.scheduler import WatcherKeeper
from headrace.store import Transaction, emit_watched, list_asset_events, resign, set_paused
from headrace.triggerer import Triggerer

SEVERAL = """
    from acting import *

    class Several(Act):
        async def count(self, until):
            for number in range(until):
                print("tells", number)
                yield TriggerEvent(number)
            await asyncio.sleep(3600)
        async def remember(self):
            store = self.asset_state_store
            seen = await store.aget("seen", default=0)
            await store.aset("seen", seen + 1)
            yield TriggerEvent(seen)
        async def break_down(self):
            raise ValueError("no such queue")
            yield
"""


class Watched:
    """An asset with one watcher."""

    def __init__(self, waiting, **arguments):
        self.waiting = waiting
        path = waiting.project / "several.py"
        path.write_text("\n".join(line.removeprefix("    ") for line in SEVERAL.splitlines()))
        watcher = Watcher(name="w", trigger="several.Several", arguments=arguments)
        flow = Workflow(
            name="consumer",
            language="python",
            nodes=(Node(key="", kind="group"), Node(key="t", parent="", operator="work")),
            assets=(AssetUse(name="orders", role="schedule", uri="s3://orders", watchers=(watcher,)),),
            schedule=Schedule(type="assets", spec={"when": {"asset": "orders"}}),
        )
        parsed = ParsedFile(file="consumer.py", digest="1", workflows=(flow,))
        (saved,) = save_parsed(waiting.store, "p", waiting.project, [parsed], waiting.clock.now())
        self.workflow_id = saved.workflows[0].id
        self.keep()

    def keep(self) -> int:
        return WatcherKeeper(self.waiting.store).tick(self.waiting.clock.now())

    def pause(self) -> None:
        self.waiting.store.transact(lambda tx: set_paused(tx, self.workflow_id, True))

    def events(self) -> list[str]:
        """What was told, oldest first."""
        with self.waiting.store.read() as tx:
            return [row.extra for row in reversed(list_asset_events(tx, asset="orders"))]

    def log(self) -> str:
        return "".join(path.read_text() for path in self.waiting.logs.glob("p/consumer/watchers/*/orders,*.log"))


@pytest.fixture
def start():
    """Starts triggerers and stops them."""
    started: list[Triggerer] = []

    def begin(waiting, **options):
        triggerer = waiting.triggerer(retry_seconds=0.05, **options)
        triggerer.start()
        started.append(triggerer)
        return triggerer

    yield begin
    for one in started:
        one.stop()


def told(*payloads):
    return [f'{{"from_trigger":true,"payload":{one}}}' for one in payloads]


def test_each_event_updates_the_asset_until_nobody_waits_for_it(waiting_anywhere, start):
    watched = Watched(waiting_anywhere, do="count", until=3)
    triggerer = start(waiting_anywhere)
    step_until(triggerer, lambda: watched.events() == told(0, 1, 2))
    assert triggerer.running == 1
    watched.pause()
    assert watched.keep() == 1
    step_until(triggerer, lambda: triggerer.running == 0)
    assert watched.log().endswith("tells 2\ncleaned up count\n")


def test_one_that_ends_begins_anew_and_finds_what_it_kept_for_the_asset(waiting, start):
    watched = Watched(waiting, do="remember")
    triggerer = start(waiting)
    step_until(triggerer, lambda: watched.events() == told(0, 1))


def test_one_that_fails_says_so_in_its_log_and_is_tried_again(waiting, start):
    watched = Watched(waiting, do="break_down")
    triggerer = start(waiting)
    step_until(triggerer, lambda: triggerer.running == 1)
    step_until(triggerer, lambda: watched.log().count("failed: ValueError: no such queue") == 2)
    assert (triggerer.running, watched.events()) == (1, [])


def test_another_triggerer_goes_on_when_one_leaves(waiting, start):
    watched = Watched(waiting, do="count", until=1)
    first = waiting.triggerer()
    first.start()
    step_until(first, lambda: watched.events() == told(0))
    first.stop()
    second = start(waiting)
    step_until(second, lambda: watched.events() == told(0, 0))


def test_the_events_of_a_process_that_takes_the_place_of_a_dead_one_count(waiting, start):
    watched = Watched(waiting, do="count", until=2)
    triggerer = start(waiting)
    step_until(triggerer, lambda: watched.events() == told(0, 1))
    os.kill(triggerer.child_pid, signal.SIGKILL)
    step_until(triggerer, lambda: watched.events() == told(0, 1, 0, 1))


@pytest.fixture
def tellings(monkeypatch):
    """How many events each commit has recorded. The answer to the first one that recorded some is lost."""
    tellings, unanswered, commit = [], [], Transaction.commit

    def emit(tx, *rest):
        recorded = emit_watched(tx, *rest)
        if recorded and not any(tellings):
            unanswered.append(tx)
        tellings.append(recorded)
        return recorded

    def commit_and_lose(tx):
        commit(tx)
        if tx in unanswered:
            raise StoreUnreachableError("the answer was lost")

    monkeypatch.setattr("headrace.triggerer.triggerer.emit_watched", emit)
    monkeypatch.setattr(Transaction, "commit", commit_and_lose)
    return tellings


def test_an_event_whose_commit_got_no_answer_updates_the_asset_once(waiting_anywhere, start, tellings):
    watched = Watched(waiting_anywhere, do="count", until=3)
    triggerer = start(waiting_anywhere)
    step_until(triggerer, lambda: len(tellings) > 1 and len(watched.events()) >= 3)
    assert watched.events() == told(0, 1, 2)


def test_such_an_event_of_a_triggerer_that_lost_its_lease_meanwhile_updates_the_asset_once(waiting, start, tellings):
    """Under its new lease the watcher begins anew, and what it tells then counts."""
    watched = Watched(waiting, do="count", until=1)
    triggerer = start(waiting, renew_seconds=3600)
    step_until(triggerer, lambda: tellings)
    before = triggerer.id
    waiting.store.transact(lambda tx: resign(tx, before, waiting.now))
    triggerer.renew()
    step_until(triggerer, lambda: len(watched.events()) > 1)
    assert tellings == [1, 0, 1]
    assert watched.events() == told(0, 0)
