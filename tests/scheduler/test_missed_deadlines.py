"""Deadlines of tasks and runs on both databases: written with the run, noticed once, gone when they were met."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest
from timed_bench import flow, node

from headrace.clock import to_micros
from headrace.definition import RUN_LATE, TASKS_LATE, Deadline, Node
from headrace.scheduler import DeadlineKeeper, RunActivator
from headrace.state import State
from headrace.store import (
    NewRun,
    News,
    clear_tasks,
    create_run,
    delete_run,
    list_errands,
    list_misses,
    mark_attempt,
    next_due,
    note_sent,
    start_queued_runs,
)
from headrace.store import schema as tables

RUN = Deadline(name="run", counts_from="run_after", seconds=60, errand=RUN_LATE)
TASK = Deadline(name="task", task="a", counts_from="run_after", seconds=60, errand=TASKS_LATE)
GROWS = Deadline(
    name="grows",
    counts_from="run_after",
    seconds=60,
    is_met_by_failure=True,
    grows=(Node(key="late", operator="work"),),
)


def errands(bench):
    with bench.store.read() as tx:
        return [(row.kind, json.loads(row.payload)) for row in list_errands(tx)]


def misses(bench):
    with bench.store.read() as tx:
        return [(row.name, row.task) for row in list_misses(tx)]


def test_workflow_without_deadlines_has_none(bench):
    bench.start(flow())
    assert bench.count(tables.deadline) == 0


def test_deadlines_are_not_there_if_the_run_is_not(bench):
    (workflow_id,) = bench.save(flow(deadlines=(RUN,)))

    def work(tx):
        create_run(tx, NewRun(workflow_id, "r"), bench.micros)
        raise LookupError

    with pytest.raises(LookupError):
        bench.store.transact(work)
    assert bench.count(tables.deadline) == 0


def test_deadline_is_a_timer(bench):
    bench.start(flow(deadlines=(RUN,)))
    with bench.store.read() as tx:
        assert next_due(tx, bench.micros) == bench.micros + 60_000_000


def test_what_is_not_done_in_time_is_noticed_once_however_many_look(bench):
    for number in range(6):
        bench.start(flow(f"w{number}", deadlines=(RUN, TASK)))
    now = bench.advance(seconds=60)

    def look(_):
        try:
            return DeadlineKeeper(bench.store).tick(now)
        finally:
            bench.store.close()

    with ThreadPoolExecutor(4) as threads:
        assert sum(threads.map(look, range(8))) == 12
    assert sorted(misses(bench)) == sorted([("run", ""), ("task", "a")] * 6)
    assert sorted(kind for kind, _ in errands(bench)) == [RUN_LATE] * 6 + [TASKS_LATE] * 6


def test_tasks_of_a_workflow_that_are_late_at_once_share_an_errand(bench):
    one = flow("w", node("a"), node("b", "a"), deadlines=(TASK, Deadline(
        name="other", task="b", counts_from="run_after", seconds=50, errand=TASKS_LATE,
    )))  # fmt: skip
    bench.start(one, "r1")
    bench.start(one, "r2")
    bench.claim(bench.agent(lease=1e6), 1)
    assert DeadlineKeeper(bench.store).tick(bench.advance(seconds=60)) == 4
    ((kind, payload),) = errands(bench)
    assert kind == TASKS_LATE
    assert sorted((miss["task"], miss["run_key"]) for miss in payload["misses"]) == [
        ("a", "r1"), ("a", "r2"), ("b", "r1"), ("b", "r2"),
    ]  # fmt: skip
    assert [(row["task"], row["state"], row["run_key"]) for row in payload["blocking"]] == [
        ("a", "running", "r1"), ("a", "scheduled", "r2"),
    ]  # fmt: skip


def test_task_that_was_done_in_time_is_no_miss_even_if_the_run_goes_on(bench):
    bench.start(flow("w", node("a"), node("b", "a"), deadlines=(TASK,)))
    bench.end(bench.claim(bench.agent(lease=1e6))[0])
    assert DeadlineKeeper(bench.store).tick(bench.advance(seconds=61)) == 1
    assert (misses(bench), bench.count(tables.deadline)) == ([], 0)


def test_task_that_was_done_too_late_is_a_miss_even_if_nobody_looked_before(bench):
    bench.start(flow(deadlines=(TASK,)))
    (task,) = bench.claim(bench.agent(lease=1e6))
    bench.advance(seconds=61)
    bench.end(task)
    DeadlineKeeper(bench.store).tick(bench.advance(seconds=10))
    assert misses(bench) == [("task", "a")]


def test_failed_task_is_a_miss_when_the_time_comes(bench):
    attempt = bench.start(flow(deadlines=(TASK, RUN, GROWS)))
    bench.end(bench.claim(bench.agent(lease=1e6))[0], "failed")
    assert bench.attempt(attempt).state == "failed"
    assert [row.name for row in bench.rows(tables.deadline)] == ["task", "run"]
    DeadlineKeeper(bench.store).tick(bench.advance(seconds=60))
    assert sorted(misses(bench)) == [("run", ""), ("task", "a")]


def test_run_that_is_done_in_time_forgets_its_deadlines(bench):
    bench.start(flow(deadlines=(TASK, RUN, GROWS)))
    bench.end(bench.claim(bench.agent(lease=1e6))[0])
    assert bench.count(tables.deadline) == 0


def test_a_miss_adds_tasks_that_the_run_waits_for(bench):
    attempt = bench.start(flow(deadlines=(GROWS,)))
    agent = bench.agent(lease=1e6)
    (task,) = bench.claim(agent)
    DeadlineKeeper(bench.store).tick(bench.advance(seconds=60))
    (late,) = bench.claim(agent)
    bench.end(task)
    assert (late.key, bench.attempt(attempt).state) == ("late", "running")
    bench.end(late)
    assert bench.attempt(attempt).state == "success"


def test_tasks_are_added_when_a_run_that_waited_begins(bench):
    one = flow(deadlines=(GROWS,), max_active_runs=1)
    bench.start(one, "r1")
    second = bench.start(one, "r2")
    agent, keeper = bench.agent(lease=1e6), DeadlineKeeper(bench.store)
    (task,) = bench.claim(agent)
    keeper.tick(bench.advance(seconds=60))
    (late,) = bench.claim(agent)
    assert bench.attempt(second).state == "queued"
    assert keeper.tick(bench.now) == 0, "nothing is due until it begins"
    bench.end(task)
    bench.end(late)
    RunActivator(bench.store).tick(bench.now)
    keeper.tick(bench.now)
    assert sorted(task.key for task in bench.claim(agent)) == ["a", "late"]


def test_schedulers_hear_of_a_run_that_begins_when_it_is_late_already(bench):
    one = flow(deadlines=(GROWS,), max_active_runs=1)
    bench.start(one, "r1")
    second = bench.start(one, "r2")
    (task,) = bench.claim(bench.agent(lease=1e6))
    DeadlineKeeper(bench.store).tick(bench.advance(seconds=60))
    (late,) = bench.claim(bench.agent("other", lease=1e6))
    bench.end(task)
    bench.end(late)
    heard = []
    bench.store.wakeups.subscribe(partial(heard.append, "plans"), News.PLANS)
    bench.store.transact(partial(start_queued_runs, workflow_id=bench.attempt(second).workflow_id, now=bench.micros))
    assert bench.attempt(second).state == "running"
    assert heard == ["plans"]


def test_run_that_was_marked_has_no_deadline_any_more(bench):
    attempt = bench.start(flow(deadlines=(RUN,)))
    bench.store.transact(lambda tx: mark_attempt(tx, attempt, State.SUCCESS, bench.micros))
    assert bench.count(tables.deadline) == 0


def test_clearing_counts_anew_from_being_queued_only(bench):
    queued = Deadline(name="queued", counts_from="queued", seconds=60)
    attempt = bench.start(flow(deadlines=(queued, RUN)))
    bench.end(bench.claim(bench.agent(lease=1e6))[0])
    now = bench.advance(minutes=5)
    task_id = bench.task(attempt).id
    bench.store.transact(lambda tx: clear_tasks(tx, attempt, [task_id], bench.micros))
    assert [(row.name, row.due_at) for row in bench.rows(tables.deadline)] == [("queued", to_micros(now) + 60_000_000)]


def test_only_runs_of_its_types_have_a_deadline(bench):
    some = Deadline(name="some", counts_from="run_after", run_types=("scheduled",))
    others = Deadline(name="others", counts_from="run_after", not_run_types=("backfill",))
    one = flow(deadlines=(some, others))
    for kind in ("scheduled", "manual", "backfill"):
        bench.start(one, kind, type=kind)
    keys = {row.id: row.key for row in bench.rows(tables.run)}
    found = [(keys[row.run_id], row.name) for row in bench.rows(tables.deadline)]
    assert found == [("scheduled", "some"), ("scheduled", "others"), ("manual", "others")]


def test_somebody_was_told(bench):
    attempt = bench.start(flow(deadlines=(TASK,)))
    other = bench.start(flow("other"), "r")
    DeadlineKeeper(bench.store).tick(bench.advance(seconds=60))
    (row,) = bench.rows(tables.deadline)
    foreign, own = bench.attempt(other).run_id, bench.attempt(attempt).run_id
    bench.store.transact(lambda tx: note_sent(tx, foreign, [row.id], is_mailed=True))
    assert not bench.rows(tables.deadline)[0].is_told, "a run speaks for its own workflow only"
    bench.store.transact(lambda tx: note_sent(tx, own, [row.id], is_mailed=True))
    bench.store.transact(lambda tx: note_sent(tx, own, [row.id], is_mailed=False))
    (row,) = bench.rows(tables.deadline)
    assert (row.is_told, row.is_mailed) == (True, True)


def test_deleted_runs_take_their_misses_along(bench):
    attempt = bench.start(flow(deadlines=(RUN,)))
    (task,) = bench.claim(bench.agent(lease=1e6))
    DeadlineKeeper(bench.store).tick(bench.advance(seconds=60))
    bench.end(task)
    run_id, later = bench.attempt(attempt).run_id, to_micros(bench.advance(days=1))
    assert bench.store.transact(lambda tx: delete_run(tx, run_id, later))
    assert bench.count(tables.deadline) == 0
