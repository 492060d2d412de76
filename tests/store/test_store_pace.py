"""What an agent is told of those that were on its machine before it: whether they keep up with their tasks."""

from __future__ import annotations

from store_bench import SECOND, flow, node

from headrace.handoff import RUN_ENDED, Errand
from headrace.store import (
    NewErrand,
    Pace,
    expire_leases,
    extend_lease,
    paces,
    register,
    resign,
    send_errands,
)

MOMENT = SECOND // 10


def enter(bench, kind="agent", place="here", queues=("default",)) -> int:
    return bench.store.transact(
        lambda tx: register(
            tx, kind=kind, name="n", place=place, pid=1, slots=8, queues=queues, now=bench.now, lease_micros=SECOND
        )
    )


def pace(bench, *agent_ids, queues=("default",)):
    with bench.store.read() as tx:
        return paces(tx, agent_ids, queues, bench.now - MOMENT, bench.now)


def test_tasks_that_were_taken_within_the_moment_are_told_apart(bench):
    agent_id = enter(bench)
    bench.start(flow(*(node(key) for key in "abcde")))
    first, *_ = bench.claim(agent_id, limit=3)
    bench.now += MOMENT + 1
    bench.end(first)
    bench.claim(agent_id, limit=1)
    assert pace(bench, agent_id) == [Pace(slots=8, old=2, new=1, is_work_left=True)]


def test_what_became_ready_a_moment_ago_is_not_left_yet(bench):
    agent_id = enter(bench)
    bench.start(flow(node("a"), node("b", queue="gpu")))
    assert pace(bench, agent_id) == [Pace(8, 0, 0, is_work_left=False)]
    bench.now += MOMENT + 1
    assert pace(bench, agent_id)[0].is_work_left
    bench.claim(agent_id)
    assert not pace(bench, agent_id)[0].is_work_left
    assert pace(bench, agent_id, queues=("inline", "gpu"))[0].is_work_left


def test_errands_count_as_work_when_they_are_due(bench):
    agent_id = enter(bench)
    attempt_id = bench.start(flow(node("a")))
    bench.claim(agent_id)
    soon = NewErrand(attempt_id, Errand(kind=RUN_ENDED, payload={}), due_at=bench.now + MOMENT)
    bench.store.transact(lambda tx: send_errands(tx, [soon], bench.now))
    bench.now += MOMENT + 1
    assert not pace(bench, agent_id)[0].is_work_left
    bench.now += MOMENT
    assert pace(bench, agent_id)[0].is_work_left


def test_who_is_gone_or_stops_or_is_silent_is_not_told_of(bench):
    gone, stopping, silent, there = (enter(bench) for _ in range(4))
    bench.now += SECOND // 2
    bench.store.transact(lambda tx: resign(tx, gone, bench.now))
    bench.store.transact(lambda tx: extend_lease(tx, stopping, bench.now, SECOND, stopping_at=bench.now))
    bench.store.transact(lambda tx: extend_lease(tx, there, bench.now, SECOND))
    assert len(pace(bench, gone, stopping, silent, there)) == 2
    bench.now += SECOND // 2 + 1
    assert len(pace(bench, gone, stopping, silent, there)) == 1
    bench.store.transact(lambda tx: expire_leases(tx, bench.now))
    assert len(pace(bench, gone, stopping, silent, there)) == 1


def test_slots_with_old_tasks_are_none_for_short_ones_and_who_takes_nothing_leaves_what_is_there():
    assert Pace(8, old=6, new=1, is_work_left=True).short_slots == 2
    assert not Pace(8, old=6, new=1, is_work_left=True).leaves_work
    assert not Pace(8, old=0, new=0, is_work_left=False).leaves_work
    assert Pace(8, old=1, new=0, is_work_left=True).leaves_work
