"""Triggers in the store: taken by one triggerer at a time, taken over when it is gone, and each wait ends once."""

from __future__ import annotations

import threading

import msgspec
import pytest
from sqlalchemy import select
from store_bench import Bench, flow, node, report

from headrace.definition import Deferral, Retry
from headrace.handoff import Fired, TaskError
from headrace.store import (
    News,
    RunGraph,
    Store,
    awaited_trigger,
    cancel_attempt,
    claim_triggers,
    clear_tasks,
    delete_run,
    expire_leases,
    fire_triggers,
    forget_triggers,
    has_free_triggers,
    held_triggers,
    let_go_of_triggers,
    list_pools,
    list_tries,
    register,
    resign,
    set_pool,
    task_values,
    wake_due_tasks,
)
from headrace.store.results import settle_and_flush
from headrace.store.schema import trigger

DAY = 86_400
SECOND = 1_000_000
FOR_A_DAY = Deferral(trigger="a.Trigger", arguments={"n": 1}, method="go_on", timeout_seconds=DAY)


def triggerer(bench: Bench, lease_seconds: float = 15) -> int:
    with bench.store.begin() as tx:
        return register(
            tx, kind="triggerer", name="t", place="here", pid=1, slots=1000, queues=(), now=bench.now,
            lease_micros=round(lease_seconds * SECOND),
        )  # fmt: skip


def claim(bench: Bench, agent_id: int, limit: int = 100, **options):
    return bench.store.transact(lambda tx: claim_triggers(tx, agent_id, limit, bench.now, **options))


def fire(bench: Bench, *told: Fired, by: int | None = None):
    return bench.store.transact(lambda tx: fire_triggers(tx, RunGraph(tx, bench.now), told, by, {}))


def rows(bench: Bench) -> list[tuple]:
    with bench.store.read() as tx:
        return [
            tuple(row) for row in tx.execute(select(trigger.c.task_id, trigger.c.is_given_up).order_by(trigger.c.id))
        ]


def deferred(bench: Bench, **fields) -> int:
    """An attempt whose task `a` has begun to wait."""
    attempt_id = bench.start(flow(node("a", **fields)))
    (task,) = bench.claim(bench.agent())
    bench.end(task, "deferred", deferral=FOR_A_DAY)
    return attempt_id


def test_a_wait_has_a_trigger_until_it_ends(bench):
    attempt_id = deferred(bench)
    assert bench.states(attempt_id) == {"a": "deferred"}
    (claimed,) = claim(bench, triggerer(bench))
    assert (claimed.path, claimed.arguments, claimed.key, claimed.try_number) == ("a.Trigger", {"n": 1}, "a", 1)
    fire(bench, Fired(trigger_id=claimed.id, event={"x": [1]}))
    assert (bench.states(attempt_id), rows(bench)) == ({"a": "scheduled"}, [])


def test_a_wait_that_ends_where_it_begins_leaves_no_trigger(bench):
    attempt_id = bench.start(flow(node("a"), node("b"), fails_fast=True))
    waiting, failing = sorted(bench.claim(bench.agent()), key=lambda task: task.key)
    bench.record(report(waiting, "deferred", deferral=FOR_A_DAY), report(failing, "failed"))
    assert (bench.states(attempt_id), rows(bench)) == ({"a": "skipped", "b": "failed"}, [])


def test_a_task_that_goes_on_is_told_the_event_and_keeps_its_values_and_its_start(bench):
    attempt_id = bench.start(flow(node("a", timeout_seconds=600)))
    agent_id = bench.agent()
    (task,) = bench.claim(agent_id)
    began = bench.now
    bench.end(task, "deferred", deferral=FOR_A_DAY, values={"pushed": msgspec.Raw(b"7")})
    bench.advance(100)
    (claimed,) = claim(bench, triggerer(bench))
    fire(bench, Fired(trigger_id=claimed.id, event="now"))
    request = bench.claim_requests(agent_id)["a"]
    assert (request.resume.method, request.resume.event, request.try_number) == ("go_on", "now", 1)
    assert request.started_at.timestamp() * SECOND == began
    assert bench.tasks(attempt_id)["a"].due_at == began + 630 * SECOND
    with bench.store.read() as tx:
        assert task_values(tx, attempt_id, ["a"], "pushed")["a"].documents == ["7"]


def test_a_new_try_begins_without_the_values_of_the_old_one(bench):
    attempt_id = deferred(bench, retry=Retry(limit=1))
    (claimed,) = claim(bench, triggerer(bench))
    fire(bench, Fired(trigger_id=claimed.id))
    agent_id = bench.agent()
    (task,) = bench.claim(agent_id)
    bench.end(task, "failed", values={"pushed": msgspec.Raw(b"7")})
    request = bench.claim_requests(agent_id)["a"]
    assert (request.resume, request.try_number) == (None, 2)
    with bench.store.read() as tx:
        assert task_values(tx, attempt_id, ["a"], "pushed")["a"].documents == []


def test_the_first_event_counts(bench):
    attempt_id = deferred(bench)
    (claimed,) = claim(bench, triggerer(bench))
    fire(bench, Fired(trigger_id=claimed.id, event=1), Fired(trigger_id=claimed.id, event=2))
    fire(bench, Fired(trigger_id=claimed.id, event=3))
    assert msgspec.json.decode(bench.tasks(attempt_id)["a"].resume)["event"] == 1


def test_an_event_of_an_earlier_wait_changes_nothing(bench):
    attempt_id = deferred(bench)
    (first,) = claim(bench, triggerer(bench))
    bench.store.transact(lambda tx: clear_tasks(tx, attempt_id, [first.task_id], bench.now))
    (task,) = bench.claim(bench.agent("two"))
    bench.end(task, "deferred", deferral=FOR_A_DAY)
    fire(bench, Fired(trigger_id=first.id, event="late"))
    assert bench.states(attempt_id) == {"a": "deferred"}


def test_two_triggerers_that_tell_the_same_resume_the_task_once(bench):
    attempt_id = deferred(bench)
    (claimed,) = claim(bench, triggerer(bench))
    barrier = threading.Barrier(2)

    def tell(event: str) -> None:
        barrier.wait()
        fire(bench, Fired(trigger_id=claimed.id, event=event))
        bench.store.close()

    threads = [threading.Thread(target=tell, args=(event,)) for event in ("one", "two")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [after for _, _, after in bench.events(attempt_id)].count("scheduled") == 2


def test_triggerers_hear_of_an_end_only_if_another_one_tells_it(bench):
    """One that lost its lease and does not know tells the end of what somebody else runs by now."""
    heard: set[str] = set()
    bench.store.wakeups.subscribe(lambda: heard.add("triggers"), News.TRIGGERS)
    bench.start(flow(node("a", deferral=FOR_A_DAY), node("b", deferral=FOR_A_DAY)))
    late, mine = triggerer(bench), triggerer(bench, 60)
    claim(bench, late)
    bench.advance(16)
    first, second = claim(bench, mine)
    heard.clear()
    fire(bench, Fired(trigger_id=first.id), by=mine)
    assert heard == set()
    fire(bench, Fired(trigger_id=second.id), by=late)
    assert heard == {"triggers"}


def test_nobody_takes_a_trigger_whose_end_is_being_told(bench, monkeypatch):
    if bench.url.startswith("sqlite"):
        pytest.skip("SQLite has one writer")
    deferred(bench)
    mine, other, elsewhere = triggerer(bench), triggerer(bench), Store(bench.url)
    (claimed,) = claim(bench, mine)
    bench.store.transact(lambda tx: let_go_of_triggers(tx, mine))
    taken: list[object] = []

    def overtaken(advance, graph):
        taken.extend(elsewhere.transact(lambda tx: claim_triggers(tx, other, 100, bench.now)))
        return settle_and_flush(advance, graph)

    monkeypatch.setattr("headrace.store.triggers.settle_and_flush", overtaken)
    fire(bench, Fired(trigger_id=claimed.id), by=mine)
    elsewhere.dispose()
    assert (taken, rows(bench)) == ([], [])


def test_triggers_are_shared_and_never_taken_twice(bench):
    nodes = [node(f"n{index}", deferral=FOR_A_DAY, priority=index) for index in range(6)]
    bench.start(flow(*nodes))
    one, two = triggerer(bench), triggerer(bench)
    first, second = claim(bench, one, limit=2), claim(bench, two, limit=10)
    assert sorted(each.key for each in first) == ["n4", "n5"]
    assert sorted(each.key for each in second) == ["n0", "n1", "n2", "n3"]
    assert claim(bench, one) == []


def test_claimers_at_the_same_time_share_a_crowd(bench):
    bench.start(flow(*(node(f"n{index}", deferral=FOR_A_DAY) for index in range(40))))
    ids = [triggerer(bench) for _ in range(4)]
    taken: list[int] = []

    def take(agent_id: int) -> None:
        while found := claim(bench, agent_id, limit=3):
            taken.extend(each.id for each in found)
        bench.store.close()

    threads = [threading.Thread(target=take, args=(agent_id,)) for agent_id in ids]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(taken) == len(set(taken)) == 40


@pytest.mark.parametrize("how", ["silent", "lost", "resigned", "let go"])
def test_triggers_of_a_triggerer_that_is_gone_are_taken_over(bench, how):
    deferred(bench)
    gone, other = triggerer(bench, 15), triggerer(bench, 60)
    assert len(claim(bench, gone)) == 1
    assert claim(bench, other) == []
    with bench.store.begin() as tx:
        if how in ("silent", "lost"):
            bench.advance(16)
        if how == "lost":
            expire_leases(tx, bench.now)
        elif how == "resigned":
            resign(tx, gone, bench.now)
        elif how == "let go":
            let_go_of_triggers(tx, gone)
    with bench.store.read() as tx:
        assert has_free_triggers(tx, bench.now)
    assert len(claim(bench, other)) == 1
    with bench.store.read() as tx:
        assert (held_triggers(tx, gone), len(held_triggers(tx, other))) == ({}, 1)
        assert not has_free_triggers(tx, bench.now)


def test_a_triggerer_that_was_given_up_takes_nothing(bench):
    deferred(bench)
    gone = triggerer(bench)
    with bench.store.begin() as tx:
        resign(tx, gone, bench.now)
    assert claim(bench, gone) == []


def test_a_private_triggerer_takes_only_what_belongs_to_its_run(bench):
    first = bench.start(flow(node("a", deferral=FOR_A_DAY), name="x"))
    bench.start(flow(node("b", deferral=FOR_A_DAY), name="y"))
    mine = triggerer(bench)
    assert [one.key for one in claim(bench, mine, attempt_ids=[first])] == ["a"]
    with bench.store.read() as tx:
        assert not has_free_triggers(tx, bench.now, [first])


def test_a_wait_that_is_over_time_goes_on_with_an_error(bench):
    attempt_id = deferred(bench)
    bench.advance(DAY)
    bench.store.transact(lambda tx: wake_due_tasks(tx, bench.now))
    assert (bench.states(attempt_id), rows(bench)) == ({"a": "scheduled"}, [])
    request = bench.claim_requests(bench.agent("two"))["a"]
    assert request.resume.error.type == "TaskDeferralTimeout"


def test_a_wait_that_was_given_up_keeps_its_trigger_until_its_work_is_ended(bench):
    attempt_id = deferred(bench)
    mine = triggerer(bench)
    (claimed,) = claim(bench, mine)
    bench.store.transact(lambda tx: cancel_attempt(tx, attempt_id, bench.now))
    with bench.store.read() as tx:
        assert held_triggers(tx, mine) == {claimed.id: True}
    fire(bench, Fired(trigger_id=claimed.id))
    assert bench.states(attempt_id) == {"a": "canceled"}
    bench.store.transact(lambda tx: forget_triggers(tx, [claimed.id]))
    assert rows(bench) == []


def test_a_wait_that_was_given_up_when_its_trigger_fired_has_its_work_ended(bench):
    attempt_id = deferred(bench)
    mine = triggerer(bench)
    (claimed,) = claim(bench, mine)
    bench.store.transact(lambda tx: cancel_attempt(tx, attempt_id, bench.now))
    fire(bench, Fired(trigger_id=claimed.id), by=mine)
    assert [(one.id, one.is_given_up) for one in claim(bench, mine)] == [(claimed.id, True)]


def test_a_wait_that_another_one_ended_in_the_same_transaction_has_its_work_ended(bench):
    attempt_id = bench.start(flow(node("a", deferral=FOR_A_DAY), node("b", deferral=FOR_A_DAY), fails_fast=True))
    mine = triggerer(bench)
    first, second = claim(bench, mine)
    fire(bench, Fired(trigger_id=first.id, outcome="failed"), Fired(trigger_id=second.id), by=mine)
    assert bench.states(attempt_id) == {"a": "failed", "b": "skipped"}
    assert [(one.id, one.is_given_up) for one in claim(bench, mine)] == [(second.id, True)]


def test_whoever_takes_over_ends_the_work_of_a_wait_that_was_given_up(bench):
    attempt_id = deferred(bench)
    claim(bench, triggerer(bench))
    bench.store.transact(lambda tx: cancel_attempt(tx, attempt_id, bench.now))
    bench.advance(16)
    assert [one.is_given_up for one in claim(bench, triggerer(bench))] == [True]


def test_a_trigger_may_end_its_task_and_leave_results(bench):
    attempt_id = bench.start(flow(node("a", deferral=FOR_A_DAY), node("b", "a")))
    (claimed,) = claim(bench, triggerer(bench))
    fire(bench, Fired(trigger_id=claimed.id, outcome="success", values={"return_value": msgspec.Raw(b"42")}))
    assert bench.states(attempt_id) == {"a": "success", "b": "scheduled"}
    with bench.store.read() as tx:
        assert task_values(tx, attempt_id, ["a"], "return_value")["a"].documents == ["42"]
        assert [one.state for one in list_tries(tx, claimed.task_id)] == ["success"]


def test_a_trigger_may_let_its_task_fail_again_and_again(bench):
    error = TaskError(type="E", message="the job failed")
    attempt_id = bench.start(flow(node("a", deferral=FOR_A_DAY, retry=Retry(limit=1))))
    mine = triggerer(bench)
    for _ in range(2):
        (claimed,) = claim(bench, mine)
        fire(bench, Fired(trigger_id=claimed.id, outcome="failed", error=error))
    assert bench.states(attempt_id) == {"a": "failed"}
    with bench.store.read() as tx:
        assert [one.state for one in list_tries(tx, claimed.task_id)] == ["failed", "failed"]


def test_deferred_tasks_take_slots_only_of_pools_that_count_them(bench):
    bench.pool("p", 1)
    nodes = [node("a", pool="p"), node("b", pool="p")]
    bench.start(flow(*nodes))
    agent_id = bench.agent()
    (a,) = bench.claim(agent_id)
    bench.end(a, "deferred", deferral=FOR_A_DAY)
    with bench.store.begin() as tx:
        set_pool(tx, "p", 1, includes_deferred=True)
    assert bench.claim(agent_id) == []
    with bench.store.read() as tx:
        assert next(pool for pool in list_pools(tx) if pool.name == "p") == ("p", 1, 1, True)
    with bench.store.begin() as tx:
        set_pool(tx, "p", 1, includes_deferred=False)
    assert [task.key for task in bench.claim(agent_id)] == ["b"]


def test_a_pool_keeps_counting_deferred_tasks_when_its_slots_change(bench):
    with bench.store.begin() as tx:
        set_pool(tx, "p", 1, includes_deferred=True)
        set_pool(tx, "p", 2)
    with bench.store.read() as tx:
        assert next(pool for pool in list_pools(tx) if pool.name == "p") == ("p", 2, 0, True)


def test_deferred_tasks_count_for_the_limit_of_the_task_but_not_of_the_run(bench):
    limited = node("a", max_active_per_workflow=1)
    bench.start(flow(limited, node("b"), max_active_tasks=1), key="r1")
    agent_id = bench.agent()
    (a,) = bench.claim(agent_id)
    bench.end(a, "deferred", deferral=FOR_A_DAY)
    bench.start(flow(limited, node("b"), max_active_tasks=1), key="r2")
    assert sorted(task.key for task in bench.claim(agent_id)) == ["b", "b"]


def test_what_a_task_waits_for_can_be_asked(bench):
    attempt_id = deferred(bench)
    task = bench.tasks(attempt_id)["a"]
    with bench.store.read() as tx:
        assert awaited_trigger(tx, task.id, bench.now) == ("a.Trigger", bench.now, None, None)
    claim(bench, triggerer(bench))
    with bench.store.read() as tx:
        assert awaited_trigger(tx, task.id, bench.now).triggerer == "t"
        assert awaited_trigger(tx, task.id, bench.now + 60 * SECOND).triggerer is None
        assert awaited_trigger(tx, 0, bench.now) is None


def test_triggers_go_with_their_run(bench):
    attempt_id = deferred(bench)
    bench.store.transact(lambda tx: cancel_attempt(tx, attempt_id, bench.now))
    assert len(rows(bench)) == 1
    with bench.store.begin() as tx:
        assert delete_run(tx, 1, bench.now + 1)
    assert rows(bench) == []
