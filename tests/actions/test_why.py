"""Why a run or a task is where it is: one test for each reason."""

from __future__ import annotations

import pytest

from headrace.actions.mark import mark
from headrace.actions.pause import pause
from headrace.actions.pools import change_pool
from headrace.actions.why import why
from headrace.definition import Deferral, Node, Retry
from headrace.errors import NotFoundError
from headrace.store import list_tasks


def reasons(world, run, task=None):
    return why(world.store, world.clock, str(run.id), task).reasons


def reason(world, run, task):
    (one,) = reasons(world, run, task)
    return one


def job(key, *upstream, **given):
    return Node(key=key, operator="python", upstream=upstream, **given)


def test_names_the_upstream_tasks_that_are_not_done(world):
    world.save(job("a"), job("b"), job("c", "a", "b"))
    run = world.trigger()
    world.join()
    world.claim(2)
    world.finish("a")
    found = reason(world, run, "c")
    assert found.kind == "upstream"
    assert found.sentence == (
        "`c` waits since 2026-02-03 04:05:06Z for `b` (running):"
        " its trigger rule `all_success` needs all of them to succeed"
    )


def test_tells_when_the_next_try_is_due(world):
    world.save(job("a", retry=Retry(limit=2, delay_seconds=30)))
    run = world.trigger()
    world.join()
    world.claim()
    world.finish("a", "failed")
    world.pass_seconds(5)
    found = reason(world, run, "a")
    assert (found.kind, found.due_at) == ("timer", world.now + 25_000_000)
    assert found.sentence == "`a` failed (ValueError: boom): try 2 of 3 is due at 2026-02-03 04:05:36Z (in 25 s)"


def test_a_timer_that_nobody_serves_misses_a_scheduler(world):
    world.save(job("a", retry=Retry(limit=1, delay_seconds=30)))
    run = world.trigger()
    world.join()
    world.claim()
    world.finish("a", "failed")
    world.pass_seconds(60)
    assert reason(world, run, "a").kind == "no_scheduler"
    world.join(kind="scheduler")
    assert reason(world, run, "a").kind == "timer"


def test_a_full_pool(world):
    world.save(job("a", pool_slots=100), job("b", pool_slots=100))
    run = world.trigger()
    world.join()
    world.claim(2)
    found = reason(world, run, "b")
    assert found.kind == "pool_full"
    assert "pool `default_pool` is full, 100 of 128 slots are taken" in found.sentence


def test_a_pool_that_is_too_small_for_ever(world):
    world.save(job("a", pool_slots=129))
    found = reason(world, world.trigger(), "a")
    assert found.kind == "pool_too_small"
    assert found.sentence.endswith("it needs 129 slots and pool `default_pool` has 128")
    assert found.hint == "`headrace pools set default_pool 129` gives it as many, or lower the task's `pool_slots`"


def test_a_pool_that_has_no_slots_at_all(world):
    change_pool(world.store, "closed", 0)
    world.save(job("a", pool="closed"))
    found = reason(world, world.trigger(), "a")
    assert found.sentence.endswith("it needs 1 slot and pool `closed` has 0")


def test_a_pool_that_does_not_exist(world):
    world.save(job("a", pool="gpus"))
    found = reason(world, world.trigger(), "a")
    assert (found.kind, found.sentence.split(": ")[1]) == ("no_pool", "its pool `gpus` does not exist")


@pytest.mark.parametrize("scope", ["run", "workflow"])
def test_the_limit_of_active_tasks(world, scope):
    world.save(job("a"), job("b"), max_active_tasks=1, max_active_tasks_scope=scope)
    run = world.trigger()
    world.join()
    assert world.claim(2) == ["a"]
    found = reason(world, run, "b")
    assert found.kind == "max_active_tasks"
    assert "max_active_tasks is 1 and 1 task of" in found.sentence


def test_the_limit_of_one_task_over_all_runs(world):
    world.save(job("a", max_active_per_workflow=1))
    world.trigger()
    world.pass_seconds(1)
    second = world.trigger()
    world.join()
    assert world.claim(2) == ["a"]
    assert reason(world, second, "a").kind == "max_active_per_workflow"


def test_a_paused_workflow(world):
    world.save(job("a"))
    run = world.trigger()
    pause(world.store, "flow")
    found = reason(world, run, "a")
    assert (found.kind, found.hint) == ("paused", "`headrace unpause flow`")


def test_no_agent_for_the_queue(world):
    world.save(job("a", queue="gpu"))
    run = world.trigger()
    world.join(queues=("default",))
    found = reason(world, run, "a")
    assert (found.kind, found.hint) == ("no_agent", "start one with `headrace agent --queues gpu`")
    assert found.sentence == "`a` waits since 2026-02-03 04:05:06Z: no agent is alive that serves queue `gpu`"


def test_where_nobody_serves_the_hint_names_what_is_all_in_one(world):
    world.save(job("a"))
    run = world.trigger()
    both = "start one with `headrace agent --queues default`, or scheduler and agent in one with `headrace standalone`"
    assert reason(world, run, "a").hint == both
    world.join(kind="scheduler")
    assert reason(world, run, "a").hint == "start one with `headrace agent --queues default`"


def test_an_agent_whose_lease_ran_out_does_not_count(world):
    world.save(job("a"))
    run = world.trigger()
    world.join(seconds=15)
    assert reason(world, run, "a").kind == "starting"
    world.pass_seconds(16)
    assert reason(world, run, "a").kind == "no_agent"


def test_an_agent_that_is_stopping_does_not_count(world):
    world.save(job("a"), job("b"))
    run = world.trigger()
    world.join(slots=1)
    world.claim(1)
    world.begin_to_stop()
    found = reason(world, run, "b")
    assert (found.kind, found.hint) == ("no_agent", "start one with `headrace agent --queues default`")
    assert found.sentence.endswith(": no agent takes tasks of queue `default`: agent `worker-1` is stopping")
    for name in ("worker-2", "worker-3", "worker-4"):
        world.join(name=name)
        world.begin_to_stop()
    several = "agents `worker-1`, `worker-2`, `worker-3` and 1 more are stopping"
    assert reason(world, run, "b").sentence.endswith(f": no agent takes tasks of queue `default`: {several}")
    world.join(name="worker-5")
    assert reason(world, run, "b").kind == "starting"


def test_slots_of_an_agent_that_is_stopping_do_not_count(world):
    world.save(job("a"), job("b"))
    run = world.trigger()
    world.join(name="old", slots=8)
    world.begin_to_stop()
    world.join(slots=1)
    world.claim(1)
    assert reason(world, run, "b").sentence.endswith("all 1 slots of agent `worker-1` are taken")


def test_a_deferred_task_and_who_runs_its_trigger(world):
    world.save(job("a", deferral=Deferral(trigger="a.Trigger")))
    run = world.trigger()
    waits = "`a` waits since 2026-02-03 04:05:06Z for trigger `a.Trigger`"
    found = reason(world, run, "a")
    assert (found.kind, found.sentence) == ("no_triggerer", f"{waits}, but no triggerer runs it")
    world.join(kind="triggerer", name="t-1", queues=())
    assert world.claim_triggers() == 1
    found = reason(world, run, "a")
    assert (found.kind, found.sentence, found.hint) == ("trigger", f"{waits}; triggerer `t-1` runs it", None)


def test_a_triggerer_that_is_stopping_does_not_count(world):
    world.save(job("a", deferral=Deferral(trigger="a.Trigger")))
    run = world.trigger()
    world.join(kind="triggerer", name="t-1", queues=())
    world.claim_triggers()
    world.begin_to_stop()
    found = reason(world, run, "a")
    assert (found.kind, found.hint) == ("no_triggerer", "`headrace triggerer` starts one")
    assert found.sentence.endswith(", but no triggerer runs it: triggerer `t-1` is stopping")
    world.join(kind="triggerer", name="t-2", queues=())
    found = reason(world, run, "a")
    assert (found.kind, found.hint) == ("trigger", None)
    assert found.sentence.endswith("; triggerer `t-1` is stopping, and another one is to go on with it")


def test_all_slots_taken(world):
    world.save(job("a"), job("b"))
    run = world.trigger()
    world.join(slots=1)
    world.claim(1)
    found = reason(world, run, "b")
    assert found.kind == "no_slot"
    assert found.sentence.endswith("all 1 slots of agent `worker-1` are taken")


def test_running_where_and_since_when(world):
    world.save(job("a", retry=Retry(limit=1)))
    run = world.trigger()
    world.join()
    world.claim()
    world.pass_seconds(12)
    found = reason(world, run, "a")
    assert found.kind == "running"
    assert found.sentence == "`a` runs on agent `worker-1` since 2026-02-03 04:05:06Z (12 s), try 1 of 2"


def test_a_run_behind_the_limit_of_runs(world):
    world.save(job("a"), max_active_runs=1)
    first = world.trigger()
    world.pass_seconds(1)
    (found,) = reasons(world, world.trigger())
    assert found.kind == "max_active_runs"
    assert f"max_active_runs is 1 and run {first.id} is not done" in found.sentence


def test_a_queued_run_of_a_paused_workflow(world):
    world.save(job("a"))
    pause(world.store, "flow")
    (found,) = reasons(world, world.trigger())
    assert (found.task, found.kind) == (None, "paused")


def test_a_running_run_is_explained_by_its_tasks(world):
    world.save(job("a"), job("b", "a"))
    run = world.trigger()
    assert [(one.task, one.kind) for one in reasons(world, run)] == [("a", "no_agent"), ("b", "upstream")]


def test_a_failed_run_names_the_task_and_its_error(world):
    world.save(job("a"), job("b", "a"))
    run = world.trigger()
    world.join()
    world.claim()
    world.pass_seconds(2)
    world.finish("a", "failed", "no such table")
    ended, failed = reasons(world, run)
    assert ended.sentence == f"run {run.id} of `flow` ended as failed at 2026-02-03 04:05:08Z after 2.0 s"
    assert failed.sentence == "`a` failed at 2026-02-03 04:05:08Z (try 1 of 1): ValueError: no such table"
    assert reason(world, run, "b").sentence.endswith("because of `a` (failed)")


def test_a_finished_task_says_how_it_ended(world):
    world.save(job("a"))
    run = world.trigger()
    world.join()
    world.claim()
    world.pass_seconds(3)
    world.finish("a")
    assert reason(world, run, "a").sentence == "`a` succeeded at 2026-02-03 04:05:09Z after 3.0 s, try 1 of 1"


def test_a_task_that_ended_with_a_run_that_was_marked_says_so_and_not_what_its_try_before_said(world):
    world.save(job("a", retry=Retry(limit=1)), job("b"), job("c", "a"))
    run = world.trigger()
    world.join()
    world.claim(2)
    world.finish("a", "failed")
    world.claim()
    mark(world.store, world.clock, "failed", str(run.id), [])
    told = [one.sentence for one in reasons(world, run)]
    assert told[1:] == [
        "`a` failed at 2026-02-03 04:05:06Z (try 2 of 2): somebody marked it so",
        "`b` failed at 2026-02-03 04:05:06Z (try 1 of 1): somebody marked it so",
    ]
    sentence = "`c` was not run (skipped) at 2026-02-03 04:05:06Z: somebody marked it so"
    assert reason(world, run, "c").sentence == sentence


@pytest.mark.parametrize(
    ("state", "verb"), [("success", "succeeded"), ("failed", "failed"), ("skipped", "was not run (skipped)")]
)
def test_a_task_that_somebody_marked_says_so(world, state, verb):
    world.save(job("a"))
    run = world.trigger()
    mark(world.store, world.clock, state, str(run.id), ["a"])
    sentence = reason(world, run, "a").sentence
    assert sentence.startswith(f"`a` {verb} at") and sentence.endswith(": somebody marked it so")


def test_a_try_that_runs_has_no_error_of_the_try_before(world):
    world.save(job("a", retry=Retry(limit=1)))
    run = world.trigger()
    world.join()
    world.claim()
    world.finish("a", "failed")
    for _ in ("scheduled", "running"):
        with world.store.read() as tx:
            (task,) = list_tasks(tx, run.attempt_id)[1:]
        assert (task.try_number, task.error) == (2, None)
        world.claim()


def test_an_unknown_task_suggests_the_nearest(world):
    world.save(job("extract"))
    run = world.trigger()
    with pytest.raises(NotFoundError) as caught:
        why(world.store, world.clock, str(run.id), "extrct")
    assert caught.value.hint == "did you mean `extract`?"


def test_says_which_executor_a_task_asks_for(world):
    choosy = job("a", executor="big", executor_options={"env": {"TOKEN": "hunter22"}})
    world.save(choosy, job("b", executor_options={"image": "y"}), job("c"))
    run = world.trigger()
    world.join()
    world.claim(3)
    said = {task: [one.sentence for one in reasons(world, run, task)[1:]] for task in "abc"}
    assert said == {
        "a": ['`a` is to be run by executor `big` with `executor_config` {"env":{"TOKEN":"***"}}'],
        "b": ['`b` is to be run by the executor of its agent with `executor_config` {"image":"y"}'],
        "c": [],
    }
    assert reasons(world, run, "a")[1].kind == "executor"
