"""Of several processes that hear of the same news, as many answer at once as it takes, and the others soon after."""

from __future__ import annotations

import queue
import threading
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.clock import to_micros
from headrace.store import (
    AgentTurn,
    News,
    Store,
    Told,
    Turn,
    extend_lease,
    find_agent_turn,
    find_turn,
    give_up,
    register,
)
from headrace.store.turns import LAST_SECONDS, STEP_SECONDS, agent_turn
from headrace.testing.nodes import START

NOW = to_micros(START)
LEASE = 1_000_000
SECONDS = 20.0
"""How long a test waits for what must happen; it goes on as soon as it happens."""


@pytest.fixture
def store(prepared_url):
    store = Store(prepared_url)
    yield store
    store.dispose()


def enter(store, kind="scheduler", now=NOW, place="here", queues=("default",)) -> int:
    return store.transact(
        lambda tx: register(
            tx, kind=kind, name="n", place=place, pid=1, slots=1, queues=queues, now=now, lease_micros=LEASE
        )
    )


def turn_of(store, scheduler_id, now=NOW) -> Turn:
    return store.transact(lambda tx: find_turn(tx, "scheduler", scheduler_id, now))


def agent_turn_of(store, agent_id) -> AgentTurn:
    return store.transact(lambda tx: find_agent_turn(tx, agent_id, NOW))


def on_machines(*agents_of_each: int) -> list[AgentTurn]:
    """The turns of so many agents on each of some machines; they were started on one machine after the other."""
    machines = [f"m{number}" for number, agents in enumerate(agents_of_each) for _ in range(agents)]
    agents = [(100 + number, machine, "[]") for number, machine in enumerate(machines)]
    return [agent_turn(agent_id, agents) for agent_id, _, _ in agents]


def test_processes_of_a_kind_are_in_one_order(store):
    schedulers = [enter(store) for _ in range(3)]
    agent = enter(store, "agent")
    assert [turn_of(store, one) for one in schedulers] == [Turn(0, 3), Turn(1, 3), Turn(2, 3)]
    assert agent_turn_of(store, agent) == AgentTurn()


def test_agents_of_one_machine_are_in_order_and_machines_take_turns(store):
    first, other = enter(store, "agent"), enter(store, "agent", place="there")
    gone = enter(store, "agent")
    second = enter(store, "agent")
    gpu = enter(store, "agent", queues=("gpu",))
    store.transact(lambda tx: give_up(tx, gone, NOW))
    assert agent_turn_of(store, first) == AgentTurn((), before=0, place=0, peers=3, of=4)
    assert agent_turn_of(store, other) == AgentTurn((), before=0, place=1, peers=3, of=4)
    assert agent_turn_of(store, gpu) == AgentTurn((), before=0, place=2, peers=3, of=4)
    assert agent_turn_of(store, second) == AgentTurn((first,), before=3, place=0, peers=1, of=4)
    assert agent_turn_of(store, gone) == AgentTurn(of=5)


def test_those_who_are_gone_or_stop_or_are_silent_have_no_turn(store):
    gone, stopping, silent = enter(store), enter(store), enter(store, now=NOW - 2 * LEASE)
    left = enter(store)
    store.transact(lambda tx: give_up(tx, gone, NOW))
    store.transact(lambda tx: extend_lease(tx, stopping, NOW, LEASE, stopping_at=NOW))
    assert turn_of(store, left) == Turn(0, 1)
    assert turn_of(store, silent) == Turn(0, 1)


def test_who_was_given_up_and_does_not_know_it_is_not_alone(store):
    lost, other = enter(store), enter(store)
    store.transact(lambda tx: give_up(tx, other, NOW))
    store.transact(lambda tx: give_up(tx, lost, NOW))
    assert turn_of(store, other) == Turn(0, 1)


@given(
    st.lists(st.integers(1, 5), min_size=1, max_size=15),
    st.integers(1, 300),
    st.integers(1, 32),
    st.integers(0, 1 << 16),
)
def test_as_many_look_at_once_as_the_tasks_need_and_all_within_a_moment(machines, tasks, slots, number):
    waits = [turn.seconds_until_look(Told(tasks, number), slots) for turn in on_machines(*machines)]
    needed = -(-tasks // slots)
    assert sum(wait == 0 for wait in waits) == min(len(waits), needed)
    assert max(waits) < LAST_SECONDS
    later = sorted(wait for wait in waits if wait > 0)
    assert len(set(later)) == len(later), "each of the others has a turn of its own"


def test_what_nobody_counted_is_looked_for_by_all():
    assert {turn.seconds_until_look(Told(None, 3), 8) for turn in on_machines(3, 2)} == {0.0}


def test_another_machine_is_first_each_time_and_on_it_the_earliest_agent():
    turns = on_machines(2, 1, 3)
    first = [[place for place, turn in enumerate(turns) if not wait(turn, number)] for number in range(3)]
    assert sorted(first) == [[0], [2], [3]]


def test_on_one_machine_the_later_agent_always_waits():
    earlier, later = on_machines(2)
    assert [wait(earlier, number) for number in (0, 1)] == [0.0, 0.0]
    assert [wait(later, number) for number in (0, 1)] == [STEP_SECONDS, STEP_SECONDS]


def wait(turn: AgentTurn, number: int) -> float:
    return turn.seconds_until_look(Told(1, number), 8)


def test_news_of_others_wait_for_the_turn_and_own_ones_do_not(store, prepared_url):
    if prepared_url.startswith("sqlite"):
        pytest.skip("SQLite only tells that something has changed, not what")
    told, called = queue.SimpleQueue(), queue.SimpleQueue()
    is_first = threading.Event()

    def waiting(one: Told) -> float:
        told.put(one)
        return 0.0 if is_first.is_set() else 3600.0

    store.wakeups.subscribe(lambda: called.put(time.monotonic()), News.WORK, waiting)
    store.wakeups.start()
    other = Store(prepared_url)
    while told.empty():  # until somebody listens
        other.transact(lambda tx: tx.tell(News.WORK, tasks=3))
    assert told.get(timeout=SECONDS).tasks == 3
    assert called.empty()
    store.transact(lambda tx: tx.tell(News.WORK, tasks=3))
    assert called.get(timeout=SECONDS), "what this process commits concerns it at once"
    is_first.set()
    other.transact(lambda tx: tx.tell(News.WORK))
    assert called.get(timeout=SECONDS), "a turn that comes earlier counts"
    while (one := told.get(timeout=SECONDS)).tasks == 3:
        pass
    assert one.tasks is None
    other.dispose()


def test_a_turn_comes_without_further_news(store, prepared_url):
    if prepared_url.startswith("sqlite"):
        pytest.skip("SQLite only tells that something has changed, not what")
    told, called = threading.Event(), threading.Event()

    def waiting(_: Told) -> float:
        told.set()
        return 0.01

    store.wakeups.subscribe(called.set, News.WORK, waiting)
    store.wakeups.start()
    other = Store(prepared_url)
    while not told.is_set():
        other.transact(lambda tx: tx.tell(News.WORK, tasks=1))
    other.dispose()
    assert called.wait(SECONDS)


def test_tasks_of_one_commit_are_counted_together(store):
    with store.begin() as tx:
        tx.tell(News.PLANS)
        assert tx.tasks_left == 0
        tx.tell(News.WORK, tasks=2)
        tx.tell(News.WORK | News.ENDS, tasks=3)
        assert tx.tasks_left == 5
        tx.tell()
        tx.tell(News.WORK, tasks=1)
        assert tx.tasks_left is None, "nobody knows how many there are"
