"""Results are applied once, out of the claim that they belong to, and followed to their consequences."""

from __future__ import annotations

import threading

import msgspec
import pytest
from sqlalchemy import update
from store_bench import Bench, flow, group, node, report

from headrace.definition import Length, Node, Retry
from headrace.errors import ConflictError
from headrace.state import MOVES, State
from headrace.store import RunGraph, cancel_attempt, claim_tasks, clear_tasks, record_results, resign, wake_due_tasks
from headrace.store.schema import run, task


def clear(bench, attempt_id: int, *task_ids: int) -> None:
    with bench.store.begin() as tx:
        clear_tasks(tx, attempt_id, list(task_ids), bench.now)


def wake(bench) -> None:
    with bench.store.begin() as tx:
        wake_due_tasks(tx, bench.now)


def test_a_result_opens_what_waited_for_it(bench):
    attempt_id = bench.start(flow(node("a"), node("b", "a"), node("c", "b")))
    agent_id = bench.agent()
    (a,) = bench.claim(agent_id)
    committed = bench.end(a)
    assert (committed.scheduled, committed.stale, committed.ended_attempts) == (1, [], [])
    assert bench.states(attempt_id) == {"a": "success", "b": "scheduled", "c": "none"}


def test_the_last_result_ends_the_run(bench):
    attempt_id = bench.start(flow(node("a")))
    (a,) = bench.claim(bench.agent())
    bench.advance(5)
    assert bench.end(a).ended_attempts == [attempt_id]
    (row,) = bench.rows(run)
    assert (row.state, row.ended_at) == ("success", bench.now)


def test_a_result_with_an_old_fence_bounces(bench):
    attempt_id = bench.start(flow(node("a", retry=Retry(limit=1))))
    agent_id = bench.agent()
    (first,) = bench.claim(agent_id)
    bench.end(first, "failed")
    (second,) = bench.claim(agent_id)
    assert (second.fence, second.try_number) == (2, 2)
    committed = bench.end(first, values={"return_value": b"1"})
    assert [one.result.fence for one in committed.stale] == [1]
    assert bench.state(attempt_id, "a") == "running"
    assert bench.values(first.id) == {}


def test_a_result_that_comes_twice_counts_once(bench):
    attempt_id = bench.start(flow(node("a"), node("b", "a")))
    (a,) = bench.claim(bench.agent())
    bench.end(a)
    before = bench.events(attempt_id)
    assert len(bench.end(a, "failed").stale) == 1
    assert bench.events(attempt_id) == before
    assert bench.tries(a.id) == [(1, "success")]


def test_a_result_that_comes_twice_in_one_batch_counts_once(bench):
    attempt_id = bench.start(flow(node("a"), node("b", "a")))
    (a,) = bench.claim(bench.agent())
    committed = bench.record(report(a), report(a, "failed"))
    assert [one.result.outcome for one in committed.stale] == ["failed"]
    assert bench.states(attempt_id) == {"a": "success", "b": "scheduled"}
    assert bench.tries(a.id) == [(1, "success")]


def test_a_late_result_of_a_rescued_task_bounces(bench):
    attempt_id = bench.start(flow(node("a", retry=Retry(limit=1, delay_seconds=60))))
    (a,) = bench.claim(bench.agent(lease_seconds=15))
    bench.advance(16)
    (lost,) = bench.rescue()
    assert (lost.name, lost.silent_seconds, lost.limit_seconds) == ("one", 16, 15)
    assert bench.state(attempt_id, "a") == "up_for_retry"
    assert len(bench.end(a).stale) == 1
    assert bench.state(attempt_id, "a") == "up_for_retry"
    assert bench.tries(a.id) == [(1, "failed")]


def test_a_rescue_without_a_try_left_fails_the_task(bench):
    attempt_id = bench.start(flow(node("a"), node("b", "a")))
    bench.claim(bench.agent(lease_seconds=15))
    bench.advance(16)
    bench.rescue()
    assert bench.states(attempt_id) == {"a": "failed", "b": "upstream_failed"}
    assert "agent `one` is gone" in bench.tasks(attempt_id)["a"].error


def test_tasks_of_an_agent_that_resigned_are_rescued_at_once(bench):
    attempt_id = bench.start(flow(node("a", retry=Retry(limit=1, delay_seconds=1))))
    agent_id = bench.agent()
    bench.claim(agent_id)
    with bench.store.begin() as tx:
        resign(tx, agent_id, bench.now)
    bench.rescue()
    assert bench.state(attempt_id, "a") == "up_for_retry"


def test_a_living_agent_keeps_its_tasks(bench):
    attempt_id = bench.start(flow(node("a")))
    bench.claim(bench.agent(lease_seconds=15))
    bench.advance(14)
    assert bench.rescue() == []
    assert bench.state(attempt_id, "a") == "running"


def test_the_result_of_a_task_cleared_while_it_ran_only_lets_it_begin_anew(bench):
    attempt_id = bench.start(flow(node("a"), node("b", "a")))
    agent_id = bench.agent()
    (a,) = bench.claim(agent_id)
    clear(bench, attempt_id, a.id)
    assert bench.state(attempt_id, "a") == "restarting"
    assert bench.end(a).stale == []
    assert bench.states(attempt_id) == {"a": "scheduled", "b": "none"}
    (again,) = bench.claim(agent_id)
    assert (again.fence, again.try_number) == (2, 2)


def test_the_result_of_a_task_that_was_cleared_and_taken_again_bounces(bench):
    attempt_id = bench.start(flow(node("a")))
    agent_id = bench.agent()
    (a,) = bench.claim(agent_id)
    clear(bench, attempt_id, a.id)
    bench.end(a, "stopped")
    bench.claim(agent_id)
    assert len(bench.end(a).stale) == 1
    assert bench.state(attempt_id, "a") == "running"


def test_clearing_a_finished_task_opens_its_run_again(bench):
    attempt_id = bench.start(flow(node("a"), node("b", "a")))
    agent_id = bench.agent()
    for _ in range(2):
        bench.end(bench.claim(agent_id)[0])
    assert [row.state for row in bench.rows(run)] == ["success"]
    clear(bench, attempt_id, bench.tasks(attempt_id)["b"].id)
    assert [(row.state, row.ended_at) for row in bench.rows(run)] == [("running", None)]
    bench.end(bench.claim(agent_id)[0])
    assert [row.state for row in bench.rows(run)] == ["success"]


def test_a_retry_waits_for_its_time(bench):
    attempt_id = bench.start(flow(node("a", retry=Retry(limit=1, delay_seconds=30))))
    agent_id = bench.agent()
    bench.end(bench.claim(agent_id)[0], "failed")
    bench.advance(29)
    wake(bench)
    assert bench.state(attempt_id, "a") == "up_for_retry"
    bench.advance(1)
    wake(bench)
    assert bench.state(attempt_id, "a") == "scheduled"


def test_a_try_over_its_limit_is_ended_by_the_clock_after_a_grace(bench):
    attempt_id = bench.start(flow(node("a", timeout_seconds=10)))
    (a,) = bench.claim(bench.agent(lease_seconds=1000))
    bench.advance(15)
    wake(bench)
    assert bench.state(attempt_id, "a") == "running"
    bench.advance(30)
    wake(bench)
    assert bench.state(attempt_id, "a") == "failed"
    assert bench.tries(a.id) == [(1, "failed")]
    assert len(bench.end(a).stale) == 1


def test_growth_runs_under_the_task_that_grew(bench):
    attempt_id = bench.start(flow(node("a"), node("b", "a")))
    agent_id = bench.agent()
    (a,) = bench.claim(agent_id)
    grown = (Node(key="a^sub", kind="group"), node("a^sub+x", parent="a^sub"))
    bench.end(a, growth=grown)
    assert bench.states(attempt_id) == {"a": "planned", "b": "none", "a^sub": "planned", "a^sub+x": "scheduled"}
    request = bench.claim_requests(agent_id)["a^sub+x"]
    assert msgspec.structs.replace(request.node, isolation="default") == grown[1]
    bench.end(bench.tasks(attempt_id)["a^sub+x"])
    assert bench.states(attempt_id)["a"] == "success"
    assert bench.states(attempt_id)["b"] == "scheduled"


def test_a_group_retry_inserts_the_next_generation_and_keeps_the_old_one_as_history(bench):
    bench.start(flow(group("g", retry=Retry(limit=1)), node("g.a", parent="g"), node("g.b", "g.a", parent="g")))
    agent_id = bench.agent()
    (first,) = bench.claim(agent_id)
    bench.end(first, "failed")
    (second,) = bench.claim(agent_id)
    assert (second.key, second.id != first.id, second.generation) == ("g.a", True, 1)
    rows = bench.rows(task, task.c.key == "g.a")
    assert sorted((row.state, bool(row.is_superseded)) for row in rows) == [("failed", True), ("running", False)]


def test_more_tasks_than_fit_one_statement_are_written_alike(bench):
    width = Length(op="literal", length=300)
    bench.pool("wide", -1)
    attempt_id = bench.start(
        flow(Node(key="m", parent="", kind="mapped", operator="work", pool="wide", expand=width), node("z", "m"))
    )
    agent_id = bench.agent()
    claimed = bench.claim(agent_id, limit=300)
    assert len(claimed) == 300
    bench.record(*(report(one, "failed" if one.map_index == 7 else "success") for one in claimed))
    states = bench.states(attempt_id)
    assert (states["m"], states["m[7]"], states["m[8]"], states["z"]) == (
        "failed",
        "failed",
        "success",
        "upstream_failed",
    )
    check_events(bench, attempt_id)


def test_a_change_that_somebody_else_made_first_raises_and_is_decided_again(bench):
    attempt_id = bench.start(flow(node("a"), node("b")))
    a, _ = bench.claim(bench.agent())
    rounds = []

    def decide(tx):
        graph = RunGraph(tx, bench.now)
        graph.lock([attempt_id])
        graph.load_with_parents([a.id])
        rounds.append(1)
        if len(rounds) == 1:
            # As if an agent had claimed it between our reading and our writing.
            tx.execute(update(task).where(task.c.id == a.id).values(version=task.c.version + 1))
        return record_results(tx, graph, [report(a)])

    assert bench.store.transact(decide).stale == []
    assert len(rounds) == 2
    assert bench.states(attempt_id) == {"a": "success", "b": "running"}


@pytest.mark.parametrize("width", [1, 200])
def test_a_lost_race_is_a_conflict_whatever_the_size_of_the_batch(bench, width):
    expand = Length(op="literal", length=width)
    bench.pool("wide", -1)
    bench.start(flow(Node(key="m", parent="", kind="mapped", operator="work", pool="wide", expand=expand)))
    claimed = bench.claim(bench.agent(), limit=width)
    with pytest.raises(ConflictError, match="somebody else was first"):
        with bench.store.begin() as tx:
            graph = RunGraph(tx, bench.now)
            graph.lock([claimed[0].attempt_id])
            graph.load_with_parents([one.id for one in claimed])
            tx.execute(update(task).where(task.c.id == claimed[0].id).values(version=task.c.version + 1))
            record_results(tx, graph, [report(one) for one in claimed])


def test_a_cancel_between_two_claims_loses_nothing(bench):
    """An agent claims a task while a user's cancel has read it as scheduled: the cancel decides again."""
    if bench.store.database.dialect == "sqlite":
        pytest.skip("SQLite has one writer: a transaction that writes has nobody beside it")
    attempt_id = bench.start(flow(node("a")))
    other = Bench(bench.url)
    agent_id, taken = other.agent(), []

    def cancel(tx):
        original = tx.write_each

        def claim_first(statement, rows):
            if not taken:
                taken.extend(other.claim(agent_id))
            original(statement, rows)

        tx.write_each = claim_first
        return cancel_attempt(tx, attempt_id, bench.now)

    bench.store.transact(cancel)
    assert len(taken) == 1
    assert bench.state(attempt_id, "a") == "running"
    bench.end(taken[0], "stopped")
    assert bench.state(attempt_id, "a") == "canceled"
    check_events(bench, attempt_id)
    other.close()


def test_results_from_many_threads_advance_one_run_without_loss(bench):
    names = [f"n{i}" for i in range(24)]
    attempt_id = bench.start(flow(*(node(name) for name in names), node("last", *names)))
    claimed = bench.claim(bench.agent())
    halves = [claimed[number::3] for number in range(3)]
    threads = [threading.Thread(target=end_all, args=(bench.url, half)) for half in halves]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert bench.state(attempt_id, "last") == "scheduled"
    check_events(bench, attempt_id)


def end_all(url: str, claimed) -> None:
    bench = Bench(url)
    for one in claimed:
        bench.end(one)
    bench.close()


def test_every_change_has_exactly_one_event(bench):
    attempt_id = bench.start(flow(node("a", retry=Retry(limit=1)), node("b", "a"), node("c")))
    agent_id = bench.agent()
    a, c = bench.claim(agent_id)
    bench.record(report(a, "failed"), report(c, "skipped"))
    bench.end(bench.claim(agent_id)[0])
    clear(bench, attempt_id, c.id)
    for _ in range(2):
        for claimed in bench.claim(agent_id):
            bench.end(claimed)
    assert [after for _, before, after in bench.events(attempt_id) if _ == a.id] == [
        "scheduled", "queued", "running", "up_for_retry", "scheduled", "queued", "running", "success",
    ]  # fmt: skip
    check_events(bench, attempt_id)
    assert [row.state for row in bench.rows(run)] == ["success"]


def check_events(bench, attempt_id: int) -> None:
    """The events of each task form a chain of legal moves from `none` to its present state."""
    last: dict[int | None, str] = {}
    for task_id, before, after in bench.events(attempt_id):
        assert last.get(task_id, "queued" if task_id is None else "none") == before
        assert task_id is None or (State(before), State(after)) in MOVES
        last[task_id] = after
    for row in bench.rows(task, task.c.attempt_id == attempt_id):
        assert last.get(row.id, "none") == row.state
        assert row.version == 0 or row.id in last


def test_claiming_and_recording_share_a_transaction(bench):
    attempt_id = bench.start(flow(node("a"), node("b", "a")))
    agent_id = bench.agent()
    (a,) = bench.claim(agent_id)
    with bench.store.begin() as tx:
        graph = RunGraph(tx, bench.now)
        record_results(tx, graph, [report(a)])
        (claim,) = claim_tasks(tx, graph, agent_id, "default", 5)
        graph.flush_events()
    assert claim.task.key == "b"
    assert bench.states(attempt_id) == {"a": "success", "b": "running"}
    check_events(bench, attempt_id)
