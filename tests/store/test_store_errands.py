"""Errands are written with what caused them, run at least once, and a few times at most."""

from __future__ import annotations

import pytest
from store_bench import Bench, flow, node

from headrace.definition import Retry
from headrace.handoff import RUN_ENDED, TRY_DIED, Errand, TaskError, TaskResult
from headrace.store import (
    NewErrand,
    News,
    ask_for_errands,
    claim_errands,
    count_open_errands,
    delete_run,
    end_errand,
    expire_leases,
    list_errands,
    rescue_errands,
    run_logs,
    send_errands,
)

FAILED = TaskError(type="ValueError", message="boom")


def claim(bench: Bench, agent_id: int, queues=("default",), limit=10, attempt_id=None):
    with bench.store.begin() as tx:
        asked = ask_for_errands(tx, queues, limit, bench.now, None if attempt_id is None else {attempt_id})
        return claim_errands(tx, agent_id, asked, bench.now)


def end(bench: Bench, claimed, outcome="success", log=None, **fields) -> bool:
    with bench.store.begin() as tx:
        result = TaskResult(task_id=-claimed.id, fence=claimed.fence, outcome=outcome, **fields)
        return end_errand(tx, claimed.id, result, log, bench.now)


def rows(bench: Bench):
    with bench.store.read() as tx:
        return list_errands(tx)


def calling(*nodes, calls_back=("success", "failed")):
    whole = flow(*nodes)
    root = type(whole.root)(key="", kind="group", calls_back=calls_back)
    return type(whole)(name="w", language="python", nodes=(root, *whole.nodes[1:]))


def test_the_end_of_a_run_is_told_with_the_task_that_explains_it(bench):
    bench.start(calling(node("a"), node("b")))
    first, second = bench.claim(bench.agent())
    bench.end(first)
    assert rows(bench) == []
    bench.end(second, "failed", error=FAILED)
    (row,) = rows(bench)
    assert (row.kind, row.task, row.state, row.payload) == (
        RUN_ENDED, "b", "waiting", '{"state":"failed","reason":null}',
    )  # fmt: skip


def test_only_wanted_endings_are_told(bench):
    bench.start(calling(node("a"), calls_back=("failed",)))
    (task,) = bench.claim(bench.agent())
    bench.end(task)
    assert rows(bench) == []


@pytest.mark.parametrize(("limit", "ending"), [(0, "failed"), (1, "retry")])
def test_a_try_that_died_is_told_and_one_that_spoke_is_not(bench, limit, ending):
    retry = Retry(limit=limit)
    nodes = [node(key, retry=retry, calls_back=("retry", "failed")) for key in ("dead", "alive")]
    bench.start(flow(*nodes))
    dead, alive = bench.claim(bench.agent())
    bench.end(dead, "failed", error=FAILED, has_died=True)
    bench.end(alive, "failed", error=FAILED)
    (row,) = rows(bench)
    assert (row.kind, row.task, row.try_number) == (TRY_DIED, "dead", 1)
    assert row.payload == f'{{"ending":"{ending}","error":"boom"}}'


def test_a_lost_agent_leaves_errands_for_the_tries_that_it_ran(bench):
    bench.start(flow(node("a", calls_back=("failed",)), node("b", calls_back=("failed",)), node("c")))
    a, b, _ = bench.claim(bench.agent())
    bench.end(a)
    bench.advance(60)
    bench.rescue()
    (row,) = rows(bench)
    assert (row.task, row.try_number) == (b.key, 1)
    assert "agent `one` is gone" in row.payload


def test_each_errand_is_taken_once_and_by_an_agent_of_its_queue(bench):
    attempt_id = bench.start(flow(node("a")))
    queues = ("gpu", "default")
    some = [NewErrand(attempt_id, Errand(kind="x", payload={"n": n}), queue=q) for n, q in enumerate(queues)]
    with bench.store.begin() as tx:
        send_errands(tx, some, bench.now)
    one, two = bench.agent(), bench.agent("two")
    (mine,) = claim(bench, one)
    assert mine.errand == Errand(kind="x", payload={"n": 1})
    assert claim(bench, two) == []
    assert [errand.errand.payload for errand in claim(bench, two, ("gpu", "default"))] == [{"n": 0}]


def send(bench: Bench, **fields) -> int:
    attempt_id = bench.start(flow(node("a")))
    with bench.store.begin() as tx:
        send_errands(tx, [NewErrand(attempt_id, Errand(kind="x"), **fields)], bench.now)
    return attempt_id


def test_an_errand_that_is_done_is_closed_and_a_late_report_changes_nothing(bench):
    attempt_id = send(bench)
    (claimed,) = claim(bench, bench.agent())
    assert end(bench, claimed)
    assert not end(bench, claimed, "failed", error=FAILED)
    assert [row.state for row in rows(bench)] == ["done"]
    with bench.store.read() as tx:
        assert not count_open_errands(tx, attempt_id)


@pytest.mark.parametrize(
    ("outcome", "fields", "is_end"),
    [("success", {}, True), ("failed", {"is_retryable": False}, True), ("stopped", {}, False), ("failed", {}, False)],
)
def test_whoever_waits_for_the_end_of_an_errand_need_not_poll(bench, outcome, fields, is_end):
    send(bench)
    (claimed,) = claim(bench, bench.agent())
    told = []
    bench.store.wakeups.subscribe(lambda: told.append("end"), News.ENDS)
    bench.store.wakeups.subscribe(lambda: told.append("plan"), News.PLANS | News.WORK)
    assert end(bench, claimed, outcome, **fields)
    assert told == (["end"] if is_end else [])


def test_a_failed_errand_is_tried_three_times_with_growing_waits(bench):
    attempt_id, agent_id = send(bench), bench.agent(lease_seconds=1e6)
    for wait in (10, 60):
        (claimed,) = claim(bench, agent_id)
        assert end(bench, claimed, "failed", error=FAILED)
        bench.advance(wait - 1)
        assert claim(bench, agent_id) == []
        bench.advance(1)
    (claimed,) = claim(bench, agent_id)
    assert claimed.tries == 3
    end(bench, claimed, "failed", error=FAILED)
    (row,) = rows(bench)
    assert (row.state, row.tries, row.error.message) == ("failed", 3, "boom")
    with bench.store.read() as tx:
        assert not count_open_errands(tx, attempt_id)


def test_what_user_code_did_wrong_is_not_tried_again(bench):
    send(bench)
    (claimed,) = claim(bench, bench.agent())
    end(bench, claimed, "failed", error=FAILED, is_retryable=False)
    assert [(row.state, row.tries) for row in rows(bench)] == [("failed", 1)]


def test_an_agent_that_stops_gives_its_errands_back_without_a_try(bench):
    send(bench)
    (claimed,) = claim(bench, bench.agent())
    end(bench, claimed, "stopped")
    assert [(row.state, row.tries) for row in rows(bench)] == [("waiting", 0)]


def test_errands_of_a_lost_agent_are_run_by_another(bench):
    send(bench)
    (lost,) = claim(bench, bench.agent())
    bench.advance(60)
    with bench.store.begin() as tx:
        expire_leases(tx, bench.now)
        assert rescue_errands(tx, bench.now) == 1
    bench.advance(10)
    (again,) = claim(bench, bench.agent("two"))
    assert (again.id, again.fence, again.tries) == (lost.id, 2, 2)
    assert not end(bench, lost), "its fence is old"
    assert end(bench, again)


def test_an_errand_may_be_due_later_and_a_private_agent_takes_only_its_own(bench):
    attempt_id, agent_id = send(bench, due_at=bench.now + 5_000_000), bench.agent()
    assert claim(bench, agent_id) == []
    bench.advance(5)
    assert claim(bench, agent_id, attempt_id=attempt_id + 1) == []
    assert len(claim(bench, agent_id, attempt_id=attempt_id)) == 1


def test_errands_go_with_their_run(bench):
    bench.start(calling(node("a")))
    (task,) = bench.claim(bench.agent())
    bench.end(task)
    (claimed,) = claim(bench, bench.agent())
    end(bench, claimed, log="w/errand.log")
    bench.advance(10)
    (row,) = rows(bench)
    with bench.store.begin() as tx:
        assert "w/errand.log" in run_logs(tx, row.run_id)
        assert delete_run(tx, row.run_id, bench.now)
    assert rows(bench) == []
