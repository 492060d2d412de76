"""Agents take tasks in order, within every limit, and never the same task twice."""

from __future__ import annotations

import threading

import pytest
from store_bench import SECOND, Bench, flow, group, node

from headrace.definition import Length, Node
from headrace.store import RunGraph, claim_tasks, clear_tasks


def keys(tasks) -> list[str]:
    return [task.name for task in tasks]


def mapped(key: str, length: int, **fields) -> Node:
    expand = Length(op="literal", length=length)
    return Node(key=key, parent="", kind="mapped", operator="work", expand=expand, **fields)


def test_among_equals_the_run_of_the_earliest_time_goes_first(bench):
    many = [node(f"n{number}") for number in range(70)]  # beyond what is inserted in one statement
    late = bench.start(flow(*many, name="late"), logical_at=bench.now)
    without = bench.start(flow(node("a"), name="without"), run_after=bench.now - 2 * SECOND)
    early = bench.start(flow(node("a"), node("b", priority=2), node("c"), name="early"), logical_at=5)
    claimed = [(one.attempt_id, one.key) for one in bench.claim(bench.agent(), limit=5)]
    assert claimed == [(early, "b"), (early, "a"), (early, "c"), (without, "a"), (late, "n0")]


def test_higher_priority_first_then_file_order(bench):
    bench.start(flow(node("a"), node("b", priority=5), node("c"), node("d", priority=5)))
    agent_id = bench.agent()
    assert keys(bench.claim(agent_id, limit=3)) == ["b", "d", "a"]
    assert keys(bench.claim(agent_id, limit=3)) == ["c"]
    assert bench.claim(agent_id) == []


def test_a_claimed_task_is_running_under_the_agents_name_with_the_next_fence(bench):
    attempt_id = bench.start(flow(node("a", timeout_seconds=60)))
    agent_id = bench.agent()
    (claimed,) = bench.claim(agent_id)
    stored = bench.tasks(attempt_id)["a"]
    assert (stored.state, stored.agent_id, stored.fence, stored.try_number) == ("running", agent_id, 1, 1)
    assert (stored.started_at, stored.first_started_at) == (bench.now, bench.now)
    assert stored.due_at > bench.now + 60_000_000
    assert stored == claimed


def test_an_agent_takes_only_what_waits_in_its_queue(bench):
    bench.start(flow(node("a"), node("b", queue="gpu"), node("c", isolation="inline")))
    agent_id = bench.agent()
    assert keys(bench.claim(agent_id, queue="gpu")) == ["b"]
    assert keys(bench.claim(agent_id, queue="inline")) == ["c"]
    assert keys(bench.claim(agent_id)) == ["a"]


def test_a_pool_has_so_many_slots_over_all_runs(bench):
    bench.pool("two", 2)
    bench.start(flow(node("a", pool="two"), node("b", pool="two"), node("free"), name="x"))
    bench.start(flow(node("c", pool="two"), name="y"))
    agent_id = bench.agent()
    a, b, free = bench.claim(agent_id)
    assert keys([a, b, free]) == ["a", "b", "free"]
    assert bench.claim(agent_id) == []
    bench.end(b)
    assert keys(bench.claim(agent_id)) == ["c"]


def test_a_task_too_wide_for_the_rest_of_its_pool_is_passed_by_a_narrower_one(bench):
    bench.pool("three", 3)
    bench.start(
        flow(
            node("a", pool="three", pool_slots=2),
            node("wide", pool="three", pool_slots=2),
            node("narrow", pool="three"),
        )
    )
    agent_id = bench.agent()
    first = bench.claim(agent_id)
    assert keys(first) == ["a", "narrow"]
    bench.end(first[0])
    assert keys(bench.claim(agent_id)) == ["wide"]


def test_many_tasks_too_wide_for_their_pool_hide_nobody_behind_them(bench):
    bench.pool("two", 2)
    wide = [node(f"wide{number}", pool="two", pool_slots=2, priority=9) for number in range(20)]
    bench.start(flow(node("first", pool="two", priority=10), *wide, node("narrow", pool="two"), node("free")))
    assert keys(bench.claim(bench.agent(), limit=3)) == ["first", "narrow", "free"]


def test_a_pool_that_does_not_exist_never_has_room(bench):
    bench.start(flow(node("a", pool="nowhere"), node("b")))
    agent_id = bench.agent()
    assert keys(bench.claim(agent_id)) == ["b"]
    bench.pool("nowhere", 1)
    assert keys(bench.claim(agent_id)) == ["a"]


def test_a_closed_pool_has_no_room_and_an_unlimited_one_always_has(bench):
    bench.pool("closed", 0)
    bench.pool("open", -1)
    bench.start(flow(node("a", pool="closed"), *(node(f"n{i}", pool="open", pool_slots=50) for i in range(5))))
    assert keys(bench.claim(bench.agent())) == ["n0", "n1", "n2", "n3", "n4"]


def test_a_run_has_at_most_so_many_active_tasks(bench):
    limited = flow(node("a"), node("b"), node("c"), max_active_tasks=2)
    bench.start(limited, "r1")
    bench.start(limited, "r2")
    agent_id = bench.agent()
    first = bench.claim(agent_id)
    assert keys(first) == ["a", "b", "a", "b"]
    bench.end(first[0])
    assert keys(bench.claim(agent_id)) == ["c"]


def test_the_limit_may_count_all_runs_of_the_workflow(bench):
    limited = flow(node("a"), node("b"), max_active_tasks=3, max_active_tasks_scope="workflow")
    bench.start(limited, "r1")
    bench.start(limited, "r2")
    bench.start(flow(node("other"), name="other"))
    assert keys(bench.claim(bench.agent())) == ["a", "b", "a", "other"]


def test_a_full_run_hides_no_other_run_behind_it(bench):
    bench.start(flow(*(node(f"n{i}", priority=9) for i in range(30)), name="full", max_active_tasks=1))
    bench.start(flow(node("other"), name="other"))
    assert keys(bench.claim(bench.agent(), limit=2)) == ["n0", "other"]


def test_a_mapped_task_has_at_most_so_many_instances_active_in_a_run(bench):
    limited = flow(mapped("m", 4, max_active_per_run=2))
    bench.start(limited, "r1")
    bench.start(limited, "r2")
    agent_id = bench.agent()
    assert keys(bench.claim(agent_id)) == ["m[0]", "m[1]", "m[0]", "m[1]"]
    assert bench.claim(agent_id) == []


def test_a_task_has_at_most_so_many_active_over_all_runs(bench):
    limited = flow(node("a", max_active_per_workflow=1), node("b"))
    bench.start(limited, "r1")
    bench.start(limited, "r2")
    assert keys(bench.claim(bench.agent())) == ["a", "b", "b"]


def test_tasks_of_a_paused_workflow_wait(bench):
    bench.start(flow(node("a")))
    (workflow_id,) = bench.save(flow(node("a")), file="w.py")
    bench.pause(workflow_id)
    assert bench.claim(bench.agent()) == []
    bench.pause(workflow_id, False)
    assert keys(bench.claim(bench.agent())) == ["a"]


def test_a_task_being_restarted_still_uses_its_slot(bench):
    bench.pool("one", 1)
    attempt_id = bench.start(flow(group("g"), node("a", pool="one"), node("b", pool="one")))
    agent_id = bench.agent()
    (a,) = bench.claim(agent_id)
    clear(bench, attempt_id, a.id)
    assert bench.state(attempt_id, "a") == "restarting"
    assert bench.claim(agent_id) == []


def clear(bench, attempt_id: int, *task_ids: int) -> None:
    with bench.store.begin() as tx:
        clear_tasks(tx, attempt_id, list(task_ids), bench.now)


def test_an_agent_that_was_given_up_claims_nothing(bench):
    bench.start(flow(node("a")))
    lost, other = bench.agent("lost", lease_seconds=10), bench.agent("other", lease_seconds=1000)
    bench.advance(11)
    bench.rescue()
    assert bench.claim(lost) == []
    assert keys(bench.claim(other)) == ["a"]


def test_two_claimers_that_take_turns_never_get_the_same_task(bench):
    bench.start(flow(*(node(f"n{i}") for i in range(10))))
    other = Bench(bench.url)
    one, two = bench.agent("one"), other.agent("two")
    taken = []
    for _ in range(3):
        taken += [*keys(bench.claim(one, limit=2)), *keys(other.claim(two, limit=2))]
    other.close()
    assert sorted(taken) == [f"n{i}" for i in range(10)]


@pytest.mark.parametrize("limit", [1, 7])
def test_claimers_in_threads_never_get_the_same_task_nor_pass_a_limit(bench, limit):
    bench.pool("ten", 10)
    bench.start(flow(*(node(f"n{i}", pool="ten" if i % 2 else "default_pool") for i in range(60))))
    taken: list[str] = []
    threads = [threading.Thread(target=claim_all, args=(bench.url, limit, taken)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(taken) == len(set(taken)) == 40
    assert sum(int(name[1:]) % 2 for name in taken) == 10


def claim_all(url: str, limit: int, taken: list[str]) -> None:
    bench = Bench(url)
    agent_id = bench.agent(threading.current_thread().name)
    empty_handed = 0
    while empty_handed < 3:
        got = keys(bench.claim(agent_id, limit))
        taken.extend(got)
        empty_handed = 0 if got else empty_handed + 1
    bench.close()


def test_a_claim_that_is_not_committed_leaves_the_task_to_others(bench):
    bench.start(flow(node("a")))
    one, two = bench.agent("one"), bench.agent("two")
    with pytest.raises(ZeroDivisionError), bench.store.begin() as tx:
        assert len(claim_tasks(tx, RunGraph(tx, bench.now), one, "default", 5)) == 1
        raise ZeroDivisionError
    assert keys(bench.claim(two)) == ["a"]
