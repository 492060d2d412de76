"""One transaction records results and takes the next tasks: of those that it scheduled itself and of all others."""

from __future__ import annotations

from collections import Counter
from functools import partial

import pytest
from store_bench import Bench, flow, node, report

from headrace.clock import from_micros, to_micros
from headrace.definition import NOOP, Deferral, Length, Node, Past
from headrace.state import Task
from headrace.store import (
    Claim,
    Claiming,
    News,
    Report,
    Requests,
    RunGraph,
    apply_results,
    claim_tasks,
    clear_tasks,
    resign,
    start_in_place_of,
    tell_of,
)
from headrace.store.postgres_line import PostgresLine
from headrace.store.schema import run


def turn(
    bench: Bench, agent_id: int, reports: list[Report], limit: int, attempt_ids=None, requests: Requests | None = None
) -> list[Claim]:
    """What an agent does in one transaction."""

    def work(tx):
        graph = RunGraph(tx, bench.now)
        claiming = Claiming(tx, graph, agent_id, attempt_ids)

        def ask():
            claiming.ask("default", limit, is_likely=True)
            if requests is not None:
                requests.ask(tx, is_likely=True)

        committed = apply_results(tx, graph, reports, None, ask)
        start_in_place_of(tx, graph, [graph.attempt(attempt_id) for attempt_id in committed.ended_attempts])
        claims = claiming.take("default", limit)
        graph.flush()
        graph.flush_events()
        tell_of(tx, graph, refused=claiming.refused)
        if requests is not None:
            requests.learn_runs(tx, graph, {task.attempt_id for task, _ in claims})
            requests.build(tx, claims, {}, 5.0)
        return claims

    return bench.store.transact(work)


def keys(claims: list[Claim]) -> list[str]:
    return [task.name for task, _ in claims]


def claim_one(bench: Bench, agent_id: int) -> Task:
    (task,) = bench.claim(agent_id, limit=1)
    return task


def test_what_the_results_schedule_is_written_once_as_running(bench):
    attempt_id = bench.start(flow(node("a"), node("b", "a")))
    agent_id = bench.agent()
    claims = turn(bench, agent_id, [report(claim_one(bench, agent_id))], 1)
    assert keys(claims) == ["b"]
    stored = bench.tasks(attempt_id)["b"]
    assert stored == claims[0].task
    assert (stored.state, stored.agent_id, stored.fence, stored.started_at) == ("running", agent_id, 1, bench.now)
    story = [(before, after) for task_id, before, after in bench.events(attempt_id) if task_id == stored.id]
    assert story == [("none", "scheduled"), ("scheduled", "queued"), ("queued", "running")]
    assert stored.version == 1


def test_both_kinds_are_taken_in_one_order(bench):
    bench.start(flow(node("a", priority=9), node("b", "a", priority=5), node("c", priority=7), node("d", priority=3)))
    agent_id = bench.agent()
    a = claim_one(bench, agent_id)
    assert a.key == "a"
    assert keys(turn(bench, agent_id, [report(a)], 3)) == ["c", "b", "d"]


def test_what_is_not_known_yet_comes_before_what_was_just_scheduled(bench):
    """Those asked for first are held back by a limit; the others behind them still have a higher priority."""
    bench.pool("none", 0)
    full = [node(f"f{number}", priority=8, pool="none") for number in range(3)]
    bench.start(flow(node("a", priority=9), *full, node("b", "a", priority=1), node("c", priority=5)))
    agent_id = bench.agent()
    assert keys(turn(bench, agent_id, [report(claim_one(bench, agent_id))], 1)) == ["c"]


def test_the_slot_of_what_ends_is_free_for_what_comes_next(bench):
    bench.pool("one", 1)
    bench.start(flow(node("a", pool="one"), node("b", pool="one"), node("c", "a", pool="one")))
    agent_id = bench.agent()
    a = claim_one(bench, agent_id)
    assert bench.claim(agent_id) == []
    assert keys(turn(bench, agent_id, [report(a)], 5)) == ["b"]


def test_a_run_has_no_more_active_tasks_than_it_may(bench):
    bench.start(flow(node("a"), node("b"), node("c"), node("d", "a"), max_active_tasks=2))
    agent_id = bench.agent()
    a, b = bench.claim(agent_id)
    assert keys(turn(bench, agent_id, [report(a)], 5)) == ["c"]
    assert keys(turn(bench, agent_id, [report(b)], 5)) == ["d"]


def test_what_begins_to_wait_for_a_trigger_still_counts_for_its_own_limit(bench):
    bench.start(flow(node("a", max_active_per_workflow=1)))
    agent_id = bench.agent()
    a = claim_one(bench, agent_id)
    bench.start(flow(node("a", max_active_per_workflow=1)), key="r2")
    deferred = report(a, "deferred", deferral=Deferral(trigger="a.Trigger"))
    assert turn(bench, agent_id, [deferred], 5) == []


def test_a_pool_that_counts_deferred_tasks_counts_those_that_begin_to_wait(bench):
    bench.pool("one", 1, includes_deferred=True)
    bench.start(flow(node("a", pool="one"), node("b", pool="one")))
    agent_id = bench.agent()
    deferred = report(claim_one(bench, agent_id), "deferred", deferral=Deferral(trigger="a.Trigger"))
    assert turn(bench, agent_id, [deferred], 5) == []


def test_nothing_of_a_paused_workflow_is_taken_unless_its_attempt_is_served(bench):
    attempt_id = bench.start(flow(node("a"), node("b", "a"), node("c", "b")))
    agent_id = bench.agent()
    a = claim_one(bench, agent_id)
    bench.pause(1)
    assert turn(bench, agent_id, [report(a)], 5) == []
    bench.pause(1, is_paused=False)
    b = claim_one(bench, agent_id)
    bench.pause(1)
    assert keys(turn(bench, agent_id, [report(b)], 5, {attempt_id})) == ["c"]


def test_other_queues_and_attempts_are_left_alone(bench):
    attempt_id = bench.start(flow(node("a"), node("b", "a", queue="gpu"), node("c", "b")))
    agent_id = bench.agent()
    assert turn(bench, agent_id, [report(claim_one(bench, agent_id))], 5) == []
    (b,) = bench.claim(agent_id, queue="gpu")
    assert turn(bench, agent_id, [report(b)], 5, {attempt_id + 1}) == []


def test_an_agent_that_was_given_up_takes_nothing_of_what_its_results_schedule(bench):
    attempt_id = bench.start(flow(node("a"), node("b", "a")))
    agent_id = bench.agent()
    a = claim_one(bench, agent_id)
    bench.store.transact(lambda tx: resign(tx, agent_id, bench.now))
    assert turn(bench, agent_id, [report(a)], 5) == []
    assert bench.states(attempt_id) == {"a": "success", "b": "scheduled"}


def test_what_a_result_left_for_others_is_known_to_what_is_taken_with_it(bench):
    bench.start(flow(node("a"), node("b", "a")))
    agent_id = bench.agent()
    (claim,) = turn(bench, agent_id, [report(claim_one(bench, agent_id), store={"x": 1})], 1)
    assert claim.has_stores


def test_on_postgresql_it_takes_two_trips(bench, monkeypatch):
    if bench.store.database.dialect == "sqlite":
        pytest.skip("SQLite has no trips")
    bench.start(flow(node("a"), node("b", "a"), node("c", "b")))
    agent_id = bench.agent()
    (b,) = turn(bench, agent_id, [report(claim_one(bench, agent_id))], 1)
    trips = counted_trips(monkeypatch)
    (c,) = turn(bench, agent_id, [report(b.task)], 1)
    assert c.task.key == "c"
    assert len(trips) == 2


def test_on_postgresql_instances_are_told_their_elements_without_another_trip(bench, monkeypatch):
    if bench.store.database.dialect == "sqlite":
        pytest.skip("SQLite has no trips")
    requests, agent_id = Requests(), bench.agent()
    first, second = take_instances_one_by_one(bench, agent_id, requests, 2)
    trips = counted_trips(monkeypatch)
    (third,) = turn(bench, agent_id, [report(second.task)], 1, requests=requests)
    assert [one.task.map_index for one in (first, second, third)] == [0, 1, 2]
    assert len(trips) == 2


def test_instances_of_a_result_that_was_made_anew_are_told_the_new_elements(bench):
    requests, agent_id = Requests(), bench.agent()
    first, _ = take_instances_one_by_one(bench, agent_id, requests, 2)
    attempt_id = first.task.attempt_id
    a = bench.tasks(attempt_id)["a"]
    bench.store.transact(lambda tx: clear_tasks(tx, attempt_id, [a.id], bench.now))
    bench.end(claim_one(bench, agent_id), values={"return_value": b"[1,2,3,4]"}, lengths={"return_value": 4})
    with bench.store.begin() as tx:
        requests.ask(tx, is_likely=True)
        (request,) = requests.build(tx, claim_tasks(tx, RunGraph(tx, bench.now), agent_id, "default", 1), {}, 5.0)
    assert (request.key, request.map_index, bytes(request.elements["a"])) == ("m", 2, b'{"element":3}')


def test_instances_are_told_no_elements_of_a_result_that_the_same_claim_makes_anew(bench):
    requests, agent_id = Requests(), bench.agent()
    _, second = take_instances_one_by_one(bench, agent_id, requests, 2)
    attempt_id = second.task.attempt_id
    a = bench.tasks(attempt_id)["a"]
    bench.store.transact(lambda tx: clear_tasks(tx, attempt_id, [a.id], bench.now))

    def work(tx):
        graph = RunGraph(tx, bench.now)
        claiming = Claiming(tx, graph, agent_id, None)

        def ask():
            claiming.ask("default", 3, is_likely=True)
            requests.ask(tx, is_likely=True)

        apply_results(tx, graph, [report(second.task)], None, ask)
        claims = claiming.take("default", 3)
        graph.flush()
        graph.flush_events()
        requests.learn_runs(tx, graph, {attempt_id})
        return requests.build(tx, claims, {}, 5.0)

    assert [(one.key, one.elements) for one in bench.store.transact(work)] == [("a", {}), ("m", {}), ("m", {})]


def take_instances_one_by_one(bench: Bench, agent_id: int, requests: Requests, count: int) -> list[Claim]:
    """So many of four instances that are mapped over the result of one task, each when the one before it has ended."""
    mapped = Node(
        key="m", parent="", kind="mapped", operator="work", upstream=("a",), expand=Length(op="result", task="a")
    )
    bench.start(flow(node("a"), mapped))
    a = claim_one(bench, agent_id)
    ended = report(a, values={"return_value": b"[5,6,7,8]"}, lengths={"return_value": 4})
    claims: list[Claim] = []
    while len(claims) < count:
        claims += turn(bench, agent_id, [report(claims[-1].task) if claims else ended], 1, requests=requests)
    return claims


def counted_trips(monkeypatch) -> list[int]:
    """How many statements each of the trips to the server takes along from now on."""
    trips, exchange = [], PostgresLine._exchange
    monkeypatch.setattr(PostgresLine, "_exchange", lambda line, sent: trips.append(len(sent)) or exchange(line, sent))
    return trips


def test_others_hear_only_of_what_concerns_them(bench):
    """A run's end concerns who waits for it, and schedulers only if it might make room for one that they start."""
    heard = set()
    for kind in (News.STOP, News.PLANS, News.ENDS):
        bench.store.wakeups.subscribe(partial(heard.add, kind), kind)
    agent_id = bench.agent()
    for name, most, expected in (("limited", 1, {News.ENDS}), ("unlimited", None, {News.ENDS, News.PLANS})):
        bench.start(flow(node("a"), name=name, max_active_runs=most))
        heard.clear()
        turn(bench, agent_id, [report(claim_one(bench, agent_id))], 1)
        assert heard == expected


def test_schedulers_hear_of_the_room_that_a_run_leaves_which_ended_when_it_began(bench):
    """The end of a run starts the next one, which has nothing to run; somebody has to start the one after it."""
    bench.start(flow(node("a"), max_active_runs=1))
    (workflow_id,) = bench.save(flow(node("a", operator=NOOP), max_active_runs=1), file="w.py", digest="2")
    for key in ("r2", "r3"):
        bench.create(workflow_id, key)
    agent_id, heard = bench.agent(), []
    bench.store.wakeups.subscribe(partial(heard.append, "plans"), News.PLANS)
    turn(bench, agent_id, [report(claim_one(bench, agent_id))], 1)
    assert {row.key: row.state for row in bench.rows(run)} == {"r1": "success", "r2": "success", "r3": "queued"}
    assert heard == ["plans"]


@pytest.mark.parametrize(("most", "expected"), [(2, {News.WORK}), (1, set())])
def test_what_a_limit_keeps_back_is_no_work_for_others(bench, most, expected):
    """Two tasks follow, of which this agent has a slot for one."""
    heard = set()
    bench.store.wakeups.subscribe(partial(heard.add, News.WORK), News.WORK)
    bench.start(flow(node("a"), node("b", "a"), node("c", "a"), max_active_tasks=most))
    agent_id = bench.agent()
    a = claim_one(bench, agent_id)
    heard.clear()
    assert keys(turn(bench, agent_id, [report(a)], 1 if most == 2 else 2)) == ["b"]
    assert heard == expected


def test_agents_hear_of_what_a_failure_stops_elsewhere(bench):
    heard = set()
    bench.store.wakeups.subscribe(partial(heard.add, "stop"), News.STOP)
    agent_id = bench.agent()
    bench.start(flow(node("a"), node("b"), name="breaks", fails_fast=True))
    a, b = bench.claim(agent_id, limit=2)
    heard.clear()
    turn(bench, agent_id, [report(a, "failed")], 1)
    assert bench.tasks(b.attempt_id)["b"].state != "running"
    assert heard == {"stop"}


# ---- the next run ------------------------------------------------------------------------------------------------


def limited(bench: Bench, runs: int, most: int = 1, of_run: dict[str, object] | None = None, **terms) -> None:
    """Queued runs of a workflow with one task, as many of them started as it allows."""
    (workflow_id,) = bench.save(flow(node("a", **terms), max_active_runs=most))
    for number in range(runs):
        at = bench.now - 10 + number
        bench.create(workflow_id, f"r{number}", logical_at=at, run_after=at, **(of_run or {}))
    bench.activate(workflow_id)


def run_states(bench: Bench) -> dict[str, str]:
    return {row.key: row.state for row in bench.rows(run)}


def test_a_run_that_ends_makes_room_for_the_next_one_whose_task_is_taken_at_once(bench):
    limited(bench, 3)
    agent_id = bench.agent()
    (claim,) = turn(bench, agent_id, [report(claim_one(bench, agent_id))], 5)
    assert run_states(bench) == {"r0": "success", "r1": "running", "r2": "queued"}
    stored = bench.tasks(claim.task.attempt_id)["a"]
    assert (stored, stored.version) == (claim.task, 0)


def test_each_run_that_ends_makes_room_for_one(bench):
    limited(bench, 6, most=3)
    agent_id = bench.agent()
    tasks = bench.claim(agent_id, limit=2)
    assert len(turn(bench, agent_id, [report(task) for task in tasks], 5)) == 3
    assert Counter(run_states(bench).values()) == {"success": 2, "running": 3, "queued": 1}


def test_a_run_of_a_workflow_that_was_paused_meanwhile_does_not_follow(bench):
    limited(bench, 2)
    agent_id = bench.agent()
    task = claim_one(bench, agent_id)
    bench.pause(bench.rows(run)[0].workflow_id)
    assert turn(bench, agent_id, [report(task)], 5) == []
    assert run_states(bench) == {"r0": "success", "r1": "queued"}


def test_a_task_that_waits_for_the_run_before_follows_it_at_once(bench):
    limited(bench, 2, past=Past())
    agent_id = bench.agent()
    (claim,) = turn(bench, agent_id, [report(claim_one(bench, agent_id))], 5)
    assert run_states(bench) == {"r0": "success", "r1": "running"}
    assert claim.task.state == "running"


def test_on_postgresql_the_next_run_takes_one_trip_more(bench, monkeypatch):
    if bench.store.database.dialect == "sqlite":
        pytest.skip("SQLite has no trips")
    limited(bench, 3)
    agent_id = bench.agent()
    (second,) = turn(bench, agent_id, [report(claim_one(bench, agent_id))], 1)
    trips = counted_trips(monkeypatch)
    (third,) = turn(bench, agent_id, [report(second.task)], 1, requests=Requests())
    assert third.task.attempt_id != second.task.attempt_id
    assert len(trips) == 3


@pytest.mark.parametrize("type_", ["scheduled", "manual"])
def test_tasks_of_the_next_run_are_told_of_it_what_the_store_has(bench, type_):
    limited(bench, 2, of_run={"type": type_, "params": {"a": 1}, "interval_start": 5, "partition_key": "p"})
    agent_id, requests = bench.agent(), Requests()
    (second,) = turn(bench, agent_id, [report(claim_one(bench, agent_id))], 1, requests=requests)
    with bench.store.read() as tx:
        told, stored = requests.run(tx, second.task.attempt_id), Requests().run(tx, second.task.attempt_id)
    assert told == stored
    assert to_micros(told.context.started_at) == bench.now
    assert told.context.previous_time == (from_micros(bench.now - 10) if type_ == "scheduled" else None)
    assert (told.context.run_key, told.context.params, told.context.partition_key) == ("r1", {"a": 1}, "p")


def test_runs_that_an_agent_does_not_know_are_asked_for_at_once(bench):
    limited(bench, 3, most=3)
    agent_id, requests = bench.agent(), Requests()
    attempts = [task.attempt_id for task in bench.claim(agent_id, limit=3)]
    with bench.store.begin() as tx:
        before = bench.store.database.statements
        requests.learn_runs(tx, RunGraph(tx, bench.now), attempts)
        assert bench.store.database.statements == before + 1
        assert [requests.run(tx, attempt_id).context.run_key for attempt_id in attempts] == ["r0", "r1", "r2"]
        assert bench.store.database.statements == before + 1
