"""How an installation is: one test for each thing that can be wrong, or only wait."""

from __future__ import annotations

from headrace.actions.pause import pause
from headrace.actions.pools import change_pool
from headrace.actions.status import status
from headrace.definition import Deferral, Node, Retry
from headrace.scheduler import Rescuer
from headrace.store import ScheduleRow, ensure_project, give_up, resign, save_schedule, workflows_named


def job(key, *upstream, **given):
    return Node(key=key, operator="python", upstream=upstream, **given)


def looked(world, **given):
    return status(world.store, world.clock, **given)


def sentences(world, **given):
    """(is it a problem, what) of everything that concerns, apart from who is missing."""
    missing = ("no scheduler is alive: no run starts by itself and no retry", "no agent is alive: no task runs")
    return [(one.is_problem, one.sentence) for one in looked(world, **given).concerns if one.sentence not in missing]


def everybody(world):
    world.join(kind="scheduler", name="s-1", slots=0, queues=())
    world.join()


def test_nobody_is_there(world):
    found = looked(world)
    assert not found.is_healthy
    assert [one.kind for one in found.concerns] == ["no_scheduler", "no_agent"]


def test_all_is_well(world):
    world.save(job("a"))
    everybody(world)
    world.trigger()
    world.claim()
    found = looked(world)
    assert (found.is_healthy, found.concerns, found.given_up) == (True, [], [])
    agent, scheduler = found.processes
    assert (agent.kind, agent.name, agent.host, agent.pid, agent.used, agent.slots) == (
        "agent", "worker-1", "here", 1, 1, 4,
    )  # fmt: skip
    assert (scheduler.kind, scheduler.name) == ("scheduler", "s-1")
    assert agent.version is not None


def test_an_agent_that_is_stopping_takes_no_tasks(world):
    world.save(job("a"))
    everybody(world)
    world.trigger()
    world.claim()
    world.begin_to_stop()
    world.pass_seconds(5)
    stopping = (
        "agent `worker-1` is stopping since 2026-02-03 04:05:06Z (5.0 s): it ends what it holds (1) and takes no more"
    )
    assert sentences(world) == [(True, "no agent takes tasks: agent `worker-1` is stopping"), (False, stopping)]
    assert not looked(world).is_healthy
    world.join(name="worker-2")
    assert sentences(world) == [(False, stopping)]
    assert looked(world).is_healthy, "another one takes them"


def test_a_triggerer_that_is_stopping_takes_no_triggers(world):
    world.save(job("a", deferral=Deferral(trigger="a.Trigger")))
    everybody(world)
    world.trigger()
    waits = "1 trigger of deferred tasks waits"
    assert sentences(world) == [(True, f"no triggerer is alive: {waits}")]
    world.join(kind="triggerer", name="t-1", queues=())
    world.claim_triggers()
    assert sentences(world) == []
    world.begin_to_stop()
    stopping = (
        "triggerer `t-1` is stopping since 2026-02-03 04:05:06Z (0.0 s): it ends what it holds (1) and takes no more"
    )
    missing = f"no triggerer takes triggers: triggerer `t-1` is stopping; {waits}"
    assert sentences(world) == [(True, missing), (False, stopping)]
    world.join(kind="triggerer", name="t-2", queues=())
    assert sentences(world) == [(False, stopping)]


def test_limits_hold_tasks_back_and_nothing_is_wrong(world):
    change_pool(world.store, "small", 1)
    world.save(*(job(f"t{number}", pool="small") for number in range(4)))
    everybody(world)
    world.trigger()
    world.claim()
    world.pass_seconds(5)
    assert sentences(world) == [(False, "3 tasks wait for up to 5.0 s: pool `small` is full, 1 of 1 slots are taken")]
    assert looked(world).is_healthy


def test_a_task_that_needs_more_slots_than_its_pool_has_is_a_problem_also_while_the_pool_is_full(world):
    change_pool(world.store, "wh", 1)
    world.save(job("a", pool="wh"), job("b", pool="wh"), job("big", pool="wh", pool_slots=3))
    everybody(world)
    world.trigger()
    assert world.claim(3) == ["a"]
    assert sentences(world) == [
        (True, "1 task waits for 0.0 s: it needs 3 slots and pool `wh` has 1"),
        (False, "1 task waits for 0.0 s: pool `wh` is full, 1 of 1 slots are taken"),
    ]
    assert looked(world).concerns[0].hint.startswith("`headrace pools set wh 3`")


def test_tasks_of_several_runs_that_wait_for_the_same_are_one_line(world):
    world.save(job("a"), name="one")
    world.save(job("a"), job("b"), name="two")
    for name in ("one", "two"):
        world.trigger(name)
    pause(world.store, "two")
    everybody(world)
    assert sentences(world) == [(False, "2 tasks wait for up to 0.0 s: workflow `two` is paused")]
    world.save(job("c", queue="gpu"), name="three")
    world.save(job("c", queue="gpu"), name="four")
    for name in ("three", "four"):
        world.trigger(name)
    assert sentences(world)[0] == (True, "2 tasks wait for up to 0.0 s: no agent is alive that serves queue `gpu`")


def test_a_ready_task_is_a_problem_when_nobody_takes_it_in_time(world):
    world.save(job("a"))
    world.trigger()
    world.pass_seconds(30)
    everybody(world)
    assert sentences(world) == []
    assert sentences(world, late_seconds=20) == [(True, "1 task waits for 30 s: no agent has come to it")]


def test_runs_that_wait_for_their_turn(world):
    world.save(job("a"), max_active_runs=1)
    everybody(world)
    for _ in range(3):
        world.trigger()
        world.pass_seconds(1)
    world.claim()
    assert sentences(world) == [
        (
            False,
            "run 2 of `flow` waits since 2026-02-03 04:05:07Z: max_active_runs is 1 and run 1 is not done"
            " (and 1 more run of the workflow)",
        )
    ]


def test_a_paused_workflow_keeps_its_runs_waiting(world):
    world.save(job("a"))
    everybody(world)
    pause(world.store, "flow")
    world.trigger()
    assert sentences(world) == [(False, "run 1 of `flow` waits since 2026-02-03 04:05:06Z: the workflow is paused")]


def test_a_schedule_that_nobody_serves(world):
    world.save(job("a"))
    with world.store.begin() as tx:
        (workflow,) = workflows_named(tx, "flow")
        save_schedule(tx, ScheduleRow(workflow.id, "digest", world.now, world.now, world.now, world.now, None))
    world.pass_seconds(125)
    late = "workflow `flow` is due since 2026-02-03 04:05:06Z (2 min 5 s)"
    assert sentences(world) == [(True, f"{late}: no scheduler is alive")]
    everybody(world)
    assert sentences(world) == [(True, f"{late}: its scheduler has not come to it")]


def test_a_folder_whose_project_is_served_from_another_one(world):
    world.save(job("a"), project="p")
    everybody(world)
    world.join(kind="scheduler", name="s-2", slots=0, queues=(), projects={"p": "/p"})
    assert looked(world).is_healthy
    world.join(kind="scheduler", name="s-3", slots=0, queues=(), projects={"p": "/q"})
    ((is_problem, sentence),) = sentences(world)
    assert is_problem and "cannot be saved from `/q`" in sentence
    assert sentence.endswith("scheduler `s-2` (process 1 on `here`) serves it from `/p`")


def test_a_folder_whose_project_was_pushed(world):
    with world.store.begin() as tx:
        ensure_project(tx, "p", "", world.now)
    everybody(world)
    world.join(kind="scheduler", name="s-2", slots=0, queues=(), projects={"p": "/p"})
    assert sentences(world) == [(True, "project `p` cannot be saved from `/p`: it is one that was pushed")]


def test_a_timetable_that_nobody_asks(world):
    world.save(job("a"))
    with world.store.begin() as tx:
        (workflow,) = workflows_named(tx, "flow")
        asked = ScheduleRow(workflow.id, "digest", None, None, None, None, None, slots_wanted_at=world.now)
        save_schedule(tx, asked)
    assert sentences(world) == []
    world.pass_seconds(90)
    everybody(world)
    wait = "since 2026-02-03 04:05:06Z (1 min 30 s)"
    assert sentences(world) == [(True, f"workflow `flow` waits {wait} for its timetable to tell the next time")]


def test_tasks_that_wait_for_their_next_try(world):
    world.save(*(job(key, retry=Retry(limit=1, delay_seconds=3600)) for key in "ab"))
    everybody(world)
    world.trigger()
    world.claim(2)
    world.finish("a", "failed")
    one = "1 task waits for the next try, at 2026-02-03 05:05:06Z (in 1 h 0 min)"
    assert sentences(world) == [(False, one)]
    world.finish("b", "failed")
    two = "2 tasks wait for the next try, the first at 2026-02-03 05:05:06Z (in 1 h 0 min)"
    assert sentences(world) == [(False, two)]


def test_a_retry_that_nobody_serves(world):
    world.save(job("a", retry=Retry(limit=1, delay_seconds=30)))
    everybody(world)
    world.trigger()
    world.claim()
    world.finish("a", "failed")
    world.pass_seconds(130)
    everybody(world)
    assert (True, "a retry or time limit is due since 2026-02-03 04:05:36Z (1 min 40 s)") in sentences(world)


def test_who_is_silent_and_then_given_up_and_who_has_left(world):
    world.save(job("a"))
    world.trigger()
    world.join(name="gone")
    world.claim()
    world.join(name="polite")
    with world.store.begin() as tx:
        resign(tx, world.agent_id, world.now)
    world.pass_seconds(40)
    everybody(world)
    assert sentences(world) == [(True, "agent `gone` is silent for 40 s, and nobody has taken over what it holds (1)")]
    Rescuer(world.store).tick(world.clock.now())
    found = looked(world)
    assert [(one.name, one.host) for one in found.given_up] == [("gone", "here")]
    assert found.is_healthy


def test_tasks_of_an_agent_that_is_gone_are_told_until_somebody_takes_them(world):
    world.save(job("a"))
    world.trigger()
    world.join(name="gone")
    world.claim()
    world.store.transact(lambda tx: give_up(tx, world.agent_id, world.now))
    world.pass_seconds(40)
    orphaned = "agent `gone` has been gone for {}, and nobody has taken over its 1 task"
    assert sentences(world) == [(True, orphaned.format("40 s"))]
    everybody(world)
    assert looked(world).is_healthy, "a scheduler needs a moment"
    world.pass_seconds(30)
    everybody(world)
    assert (True, orphaned.format("1 min 10 s")) in sentences(world)
    Rescuer(world.store).tick(world.clock.now())
    assert "orphaned" not in {one.kind for one in looked(world).concerns}
