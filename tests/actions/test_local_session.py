"""Which tasks a local run runs: the same session goes on where it stopped, and people choose parts of it."""

from __future__ import annotations

import os

import pytest

from headrace.actions.local_session import LocalWish, abandon_orphans, begin_local_run
from headrace.clock import from_micros
from headrace.definition import Node, Schedule
from headrace.errors import NotFoundError, StateError, UsageError
from headrace.processes import place
from headrace.store import Definitions, current_version_of, register, resign, workflows_named

SAVED = LocalWish(is_saved=True, session="2026-01-31")


def row(*keys):
    """Tasks one after the other."""
    return [Node(key=key, upstream=keys[at - 1 : at], operator="work") for at, key in enumerate(keys)]


class Sessions:
    """Begins local runs of the one workflow of a world and works on them."""

    def __init__(self, world):
        self.world = world
        self.last = None

    def begin(self, wish=SAVED):
        def work(tx):
            workflow_id = workflows_named(tx, "flow")[0].id
            workflow = tx.shared(Definitions).version(tx, current_version_of(tx, workflow_id)).workflow
            abandon_orphans(tx, workflow_id, self.world.now)
            return begin_local_run(tx, workflow_id, workflow, wish, self.world.clock.now(), is_private=True)

        self.last = self.world.store.transact(work)
        return self.last

    def run(self, wish=SAVED, failing=()):
        """Begin and work until nothing is left; returns what ran."""
        self.world.pass_seconds(1)
        self.begin(wish)
        ran = []
        while names := self.world.claim(limit=10):
            for name in names:
                ran.append(name)
                self.world.finish(name, "failed" if name in failing else "success")
        return ran


@pytest.fixture
def sessions(world):
    world.save(*row("+a", "+b", "+c", "+d"))
    world.join(slots=10, name="somebody")
    return Sessions(world)


def test_session_goes_on_where_it_stopped(sessions):
    assert sessions.run(failing=("+c",)) == ["+a", "+b", "+c"]
    assert sessions.run() == ["+c", "+d"]
    assert sessions.run() == []
    assert sessions.last.attempt_number == 3
    assert sessions.world.run(sessions.last.id).state == "success"


def test_other_time_is_another_session(sessions):
    sessions.run()
    first = sessions.last.id
    assert sessions.run(SAVED._replace(session="2026-02-01")) == ["+a", "+b", "+c", "+d"]
    assert sessions.last.id != first


def test_newest_session_is_meant_without_a_time(sessions):
    assert sessions.run(LocalWish(is_saved=True, session="last")) == ["+a", "+b", "+c", "+d"]
    assert from_micros(sessions.last.logical_at).isoformat() == "2026-02-03T00:00:00+00:00", "today"
    sessions.run(SAVED)
    assert sessions.run(LocalWish(is_saved=True)) == []
    assert from_micros(sessions.last.logical_at).isoformat() == "2026-01-31T00:00:00+00:00", "the newest one"


def test_last_scheduled_time_is_meant_before_there_is_a_session(world):
    spec = {"expression": "0 0 * * *", "semantics": "digdag"}
    world.save(*row("+a"), schedule=Schedule(type="cron", spec=spec), timezone="Asia/Tokyo")
    world.join()
    sessions = Sessions(world)
    sessions.begin(LocalWish(is_saved=True))
    assert from_micros(sessions.last.logical_at).isoformat() == "2026-02-02T15:00:00+00:00"


def test_rerun_runs_everything(sessions):
    sessions.run()
    assert sessions.run(SAVED._replace(is_rerun=True)) == ["+a", "+b", "+c", "+d"]


def test_start_runs_a_task_and_what_comes_after_it_again(sessions):
    sessions.run()
    assert sessions.run(SAVED._replace(start="+c")) == ["+c", "+d"]


def test_goal_runs_a_task_again_and_leaves_out_the_rest(sessions):
    sessions.run(failing=("+a",))
    assert sessions.run(SAVED._replace(goal="+b")) == ["+a", "+b"]
    assert sessions.run(SAVED._replace(goal="+b")) == ["+b"], "what comes before it is not run again"
    assert sessions.run() == ["+c", "+d"]


def test_end_runs_what_comes_before(sessions):
    assert sessions.run(SAVED._replace(end="+c")) == ["+a", "+b"]
    assert sessions.world.run(sessions.last.id).state == "success"
    assert sessions.run() == ["+c", "+d"], "what was left out is not taken for done"


def test_start_and_end_choose_a_part(sessions):
    sessions.run()
    assert sessions.run(SAVED._replace(start="+b", end="+d")) == ["+b", "+c"]


def test_task_alone_runs_without_what_it_waits_for(sessions):
    assert sessions.run(SAVED._replace(task="+c")) == ["+c"]
    assert sessions.run() == ["+a", "+b", "+c", "+d"], "it was done before its turn"
    assert sessions.run(SAVED._replace(task="+c", is_rerun=True)) == ["+c"]


def test_task_in_a_group_runs_with_what_is_below_it(world):
    inner = [Node(key="+g+x", parent="+g", operator="work"), Node(key="+g+y", parent="+g", upstream=("+g+x",))]
    world.save(*row("+a"), Node(key="+g", kind="group", upstream=("+a",)), *inner, Node(key="+z", upstream=("+g",)))
    world.join(slots=10, name="somebody")
    sessions = Sessions(world)
    assert sessions.run(SAVED._replace(task="+g")) == ["+g+x"]
    assert sessions.run(SAVED._replace(goal="+y")) == ["+a", "+g+x"], "the group was done before its turn"
    assert sessions.run(SAVED._replace(start="+x")) == ["+g+x"]


def test_task_that_is_new_in_a_group_that_was_done_runs_and_is_waited_for(world):
    def save(*keys):
        inside = [Node(key=f"+g+{key}", parent="+g", operator="work") for key in keys]
        world.save(Node(key="+g", kind="group"), *inside, Node(key="+f", upstream=("+g",), operator="work"))

    save("a")
    world.join(slots=10, name="somebody")
    sessions = Sessions(world)
    assert sessions.run(failing=("+f",)) == ["+g+a", "+f"]
    save("a", "b")
    assert sessions.run() == ["+g+b", "+f"]


def test_unsaved_run_neither_goes_on_nor_is_gone_on_with(sessions):
    sessions.run(failing=("+d",))
    assert sessions.run(SAVED._replace(is_saved=False)) == ["+a", "+b", "+c", "+d"]
    assert sessions.run() == ["+d"]


def test_dry_run_calls_nothing_and_leaves_everything_to_do(sessions):
    assert sessions.run(SAVED._replace(is_dry=True)) == []
    assert sessions.world.run(sessions.last.id).state == "success"
    assert sessions.run() == ["+a", "+b", "+c", "+d"]


def test_parameters_are_those_of_the_last_command(sessions):
    sessions.run(SAVED._replace(params={"n": 1}), failing=("+a",))
    sessions.begin(SAVED._replace(params={"m": 2}))
    (name,) = sessions.world.claim()
    assert name == "+a"


def test_a_task_in_a_group_is_suggested_by_the_last_part_of_its_name(world):
    world.save(*row("+daily+load", "+daily+a", "+daily+b", "+daily+c", "+daily+d", "+daily+e"))
    with pytest.raises(NotFoundError, match=r"there is no task `\+lod`") as caught:
        Sessions(world).begin(SAVED._replace(task="+lod"))
    assert caught.value.hint.startswith("did you mean `+daily+load`? the workflow has `+daily+load`, `+daily+a`")
    assert caught.value.hint.endswith("and 1 more, which `headrace check --json` lists")


def test_unknown_and_ambiguous_tasks_are_named(world):
    world.save(*row("+one+x", "+two+x"), Node(key="+last", operator="work"))
    sessions = Sessions(world)
    with pytest.raises(UsageError, match=r"several tasks match `\+x`: `\+one\+x`, `\+two\+x`"):
        sessions.begin(SAVED._replace(goal="+x"))
    with pytest.raises(NotFoundError, match=r"there is no task `\+lost`") as caught:
        sessions.begin(SAVED._replace(end="+lost"))
    assert caught.value.hint == "did you mean `+last`? the workflow has `+one+x`, `+two+x`, `+last`"
    with pytest.raises(UsageError, match="needs a session that was saved"):
        sessions.begin(LocalWish(start="+last"))


def local_agent(world, run, pid):
    with world.store.begin() as tx:
        return register(
            tx, kind="agent", name=f"run-{run.id}", place=place(), pid=pid, slots=1, queues=("default",),
            now=world.now, lease_micros=15_000_000,
        )  # fmt: skip


def test_session_that_another_process_works_on_is_left_alone(sessions):
    run = sessions.begin()
    agent_id = local_agent(sessions.world, run, os.getpid())
    with pytest.raises(StateError, match="another process is running `flow`") as caught:
        sessions.begin()
    assert "--no-save" in caught.value.hint
    with sessions.world.store.begin() as tx:
        resign(tx, agent_id, sessions.world.now)
    sessions.world.pass_seconds(61)
    assert sessions.run() == ["+a", "+b", "+c", "+d"]


def test_session_of_a_process_that_was_killed_goes_on_at_once(sessions):
    run = sessions.begin()
    sessions.world.agent_id = local_agent(sessions.world, run, 2**22 - 1)
    assert sessions.world.claim() == ["+a"]
    assert sessions.begin().attempt_number == 2


FAILED_BEFORE = {"nothing yet": None, "failed at +c": ("+c",), "all done": ()}
ALL = ["+a", "+b", "+c", "+d"]


@pytest.mark.parametrize(
    ("wish", "ran"),
    [
        ({}, (ALL, ["+c", "+d"], [])),
        ({"is_rerun": True}, (ALL, ALL, ALL)),
        ({"start": "+b"}, (ALL, ["+b", "+c", "+d"], ["+b", "+c", "+d"])),
        ({"goal": "+b"}, (["+a", "+b"], ["+b"], ["+b"])),
        ({"goal": "+d"}, (ALL, ["+c", "+d"], ["+d"])),
        ({"end": "+b"}, (["+a"], [], [])),
        ({"end": "+d"}, (["+a", "+b", "+c"], ["+c"], [])),
        ({"start": "+b", "goal": "+c"}, (["+a", "+b", "+c"], ["+b", "+c"], ["+b", "+c"])),
        ({"start": "+b", "end": "+d"}, (["+a", "+b", "+c"], ["+b", "+c"], ["+b", "+c"])),
        ({"start": "+a", "end": "+c"}, (["+a", "+b"], ["+a", "+b"], ["+a", "+b"])),
        ({"is_rerun": True, "end": "+c"}, (["+a", "+b"], ["+a", "+b"], ["+a", "+b"])),
        ({"is_rerun": True, "goal": "+c"}, (["+a", "+b", "+c"], ["+a", "+b", "+c"], ["+a", "+b", "+c"])),
    ],
    ids=str,
)
@pytest.mark.parametrize("before", FAILED_BEFORE)
def test_choice_of_tasks_for_each_saved_state(sessions, wish, ran, before):
    failing = FAILED_BEFORE[before]
    if failing is not None:
        sessions.run(failing=failing)
    assert sessions.run(SAVED._replace(**wish)) == ran[list(FAILED_BEFORE).index(before)]
    assert sessions.world.run(sessions.last.id).state == "success"
