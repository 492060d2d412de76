"""Trigger, clear, retry, kill, pause: what each does to a run."""

from __future__ import annotations

import pytest

from headrace.actions.clear import clear
from headrace.actions.finding import find_run, find_task
from headrace.actions.kill import kill
from headrace.actions.pause import pause, unpause
from headrace.actions.retry import Again, retry
from headrace.actions.selecting import Selection
from headrace.definition import Node, Schedule
from headrace.errors import NotFoundError, StateError, UsageError
from headrace.store import (
    ScheduleRow,
    find_project,
    get_schedule,
    list_runs,
    list_workflows,
    remove_file,
    save_schedule,
)

FAILED = Selection(only_failed=True)


def job(key, *upstream, **given):
    return Node(key=key, operator="python", upstream=upstream, **given)


def failed_run(world):
    """`a` succeeded, `b` failed, so that `c` was not run."""
    world.save(job("a"), job("b"), job("c", "b"))
    run = world.trigger()
    world.join()
    world.claim(2)
    world.finish("a")
    world.finish("b", "failed")
    assert world.run(run.id).state == "failed"
    return run


def test_a_triggered_run_starts_at_once(world):
    world.save(job("a"))
    run = world.trigger(params={"n": 1}, run_key="mine")
    assert (run.state, run.key, run.params) == ("running", "mine", '{"n":1}')
    assert world.states(run) == {"a": "scheduled"}


def test_a_second_run_for_the_same_time_is_refused(world):
    world.save(job("a"))
    world.trigger(session="2026-01-01")
    world.pass_seconds(1)
    sentence = "workflow `flow` already has a run for 2026-01-01T00:00:00Z: run 1 is `running`"
    with pytest.raises(StateError, match=sentence) as caught:
        world.trigger(session="2026-01-01")
    assert caught.value.hint == "`headrace why 1` says what it does"
    world.join()
    world.claim()
    world.finish("a", "failed")
    with pytest.raises(StateError, match="run 1 is `failed`\nhint: `headrace retry 1` runs it again"):
        world.trigger(session="2026-01-01")


def test_a_run_that_has_not_started_cannot_be_cleared_and_says_where_to_look(world):
    world.save(job("a"), max_active_runs=1)
    world.trigger()
    world.pass_seconds(1)
    waiting = world.trigger()
    for tasks in ([], ["a"]):
        with pytest.raises(StateError, match="cannot clear run 2 of `flow`: it has not started") as caught:
            clear(world.store, world.clock, str(waiting.id), tasks)
        assert caught.value.hint == "`headrace why 2` says what it waits for"


def test_a_task_to_resume_from_that_is_not_there_says_which_is_near_and_where_all_are(world):
    failed_run(world)
    with pytest.raises(NotFoundError, match="there is no task `aa`") as caught:
        retry(world.store, world.clock, "1", Again(resumes_from="aa"))
    assert caught.value.hint == "did you mean `a`? `headrace tasks 1` lists them"


def test_clearing_what_failed_leaves_what_succeeded(world):
    run = failed_run(world)
    assert clear(world.store, world.clock, str(run.id), (), FAILED)[0].tasks == ["b", "c"]
    assert world.states(run) == {"a": "success", "b": "scheduled", "c": "none"}
    assert world.run(run.id).state == "running"


def test_clearing_one_task_with_everything_after_it(world):
    run = failed_run(world)
    assert clear(world.store, world.clock, str(run.id), ["b"], Selection(downstream=True))[0].tasks == ["b", "c"]


def test_clearing_a_run_that_has_nothing_failed(world):
    world.save(job("a"))
    run = world.trigger()
    with pytest.raises(StateError, match="no failed task"):
        clear(world.store, world.clock, str(run.id), (), FAILED)


def test_a_retry_is_a_new_attempt_that_carries_over_what_succeeded(world):
    run = failed_run(world)
    world.pass_seconds(1)
    again = retry(world.store, world.clock, "flow")
    assert (again.id, again.attempt_number, again.state) == (run.id, 2, "running")
    assert world.states(run) == {"a": "success", "b": "scheduled", "c": "none"}


def test_a_run_that_goes_on_cannot_be_retried(world):
    world.save(job("a"))
    run = world.trigger()
    with pytest.raises(StateError, match=f"cannot retry run {run.id}: it is still `running`"):
        retry(world.store, world.clock, str(run.id))


def test_killing_a_run_ends_what_does_not_run_yet(world):
    world.save(job("a"), job("b", "a"))
    run = world.trigger()
    assert kill(world.store, world.clock, "latest").state == "canceled"
    assert world.states(run) == {"a": "canceled", "b": "canceled"}
    with pytest.raises(StateError, match="already ended as `canceled` at 2026-02-03T04:05:06Z"):
        kill(world.store, world.clock, "latest")


def test_runs_of_a_paused_workflow_wait_until_it_goes_on(world):
    world.save(job("a"))
    assert pause(world.store, "flow").is_paused
    run = world.trigger()
    assert run.state == "queued"
    assert not unpause(world.store, world.clock, "flow").is_paused
    assert world.run(run.id).state == "running"


def test_unpausing_gives_a_schedule_its_time_again(world):
    world.save(job("a"), schedule=Schedule(type="interval", spec={"seconds": 60}))
    with world.store.begin() as tx:
        (row,) = list_workflows(tx)
        save_schedule(tx, ScheduleRow(row.id, "digest", world.now, world.now, world.now, None, None))
    pause(world.store, "flow")
    unpause(world.store, world.clock, "flow")
    with world.store.read() as tx:
        assert get_schedule(tx, row.id).run_at == world.now


def test_an_unknown_workflow_suggests_the_nearest(world):
    world.save(job("a"), name="daily_sales")
    with pytest.raises(NotFoundError) as caught:
        world.trigger("daly_sales")
    assert caught.value.hint == "did you mean `daily_sales`?"


def test_a_name_in_two_projects_must_say_which(world):
    world.save(job("a"), project="shop")
    world.save(job("a"), project="bank")
    with pytest.raises(UsageError, match="several projects: `shop`, `bank`"):
        world.trigger("flow")
    assert world.trigger("bank/flow").project == "bank"


def test_a_name_that_was_in_two_projects_must_say_which(world):
    for project in ("shop", "bank"):
        world.save(job("a"), project=project)
        run = world.trigger(f"{project}/flow")
        with world.store.begin() as tx:
            remove_file(tx, find_project(tx, project).id, "flow.py")
    with world.store.read() as tx:
        with pytest.raises(UsageError, match="was in several projects: `shop`, `bank`"):
            find_run(tx, "flow")
        assert find_run(tx, "bank/flow").id == run.id


def test_the_end_of_a_key_is_enough_if_it_is_unique(world):
    world.save(job("+main+load+x"), job("group.extract"))
    run = world.trigger()
    with world.store.read() as tx:
        assert find_task(tx, run, "+x").key == "+main+load+x"
        assert find_task(tx, run, "extract").key == "group.extract"
        with pytest.raises(NotFoundError):
            find_task(tx, run, "tract")


def test_runs_come_in_pages_newest_first(world):
    world.save(job("a"))
    ids = []
    for _ in range(3):
        ids.append(world.trigger().id)
        world.pass_seconds(1)
    with world.store.read() as tx:
        first = [run.id for run in list_runs(tx, limit=2)]
        rest = [run.id for run in list_runs(tx, before=first[-1], limit=2)]
        assert find_run(tx, "latest").id == find_run(tx, "flow").id == ids[-1]
    assert first + rest == ids[::-1]
