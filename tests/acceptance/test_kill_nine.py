"""Whoever is killed in the middle of a run of many tasks: the run succeeds, and no two tries of a task overlap."""

from __future__ import annotations

import signal
import time

import pytest
from cluster import LEASE_SECONDS, Member, kill
from marathon_record import Record

from headrace.processes import is_alive
from headrace.store.database import FROZEN_SECONDS
from headrace.testing.postgres import PostgresServer

AT_ONCE_SECONDS = 2.0
"""The death of a task's process, or of its warm parent, is noticed by its agent itself."""
SLOW = "step_040"
MANY = 200
SOME = 80
"""Enough for every slot of every agent, where what happens to one task is the point."""
FOR_EVER = "60"
RESCUE_SECONDS = LEASE_SECONDS + 15.0
"""Mostly for starting processes on a busy machine; the figures are those of `headrace.testing.faults.recovery`."""


class Marathon:
    """A cluster that runs the marathon, and its record."""

    def __init__(self, cluster, record):
        self.cluster = cluster
        self.record = record
        self.run_id = 0

    def start(self):
        self.run_id = self.cluster.trigger("marathon")

    def reach(self, ended):
        """Wait until so many tries have ended and others are under way; these."""

        def is_reached():
            return self.record.ended() >= ended and self.record.under_way()

        return self.cluster.wait_until(is_reached, f"{ended} tries have ended")

    def held_by(self, agent=None):
        """Task and number of each try that an agent holds, as the store says; of all agents if none is named."""
        tasks = self.cluster.tasks(self.run_id).values()
        held = [task for task in tasks if task.state == "running" and agent in (None, task.agent)]
        return [(task.name, task.try_number) for task in held]

    def reach_slow_try(self, number=1):
        """Wait until a try of the slow task is under way; the agent that runs it."""
        self.cluster.wait_until(lambda: self.record.started_at(SLOW, number), f"try {number} of `{SLOW}` is under way")
        return self.cluster.tasks(self.run_id)[SLOW].agent

    def wait_for_next(self, tries, killed_at, within):
        """These tries were interrupted: each is followed by another one in time.

        Unless the database was already about to commit its result.
        """

        def next_start(task, number):
            return self.record.started_at(task, number + 1) or (self.succeeded(task, number) and killed_at)

        starts = [
            self.cluster.wait_until(
                lambda task=task, number=number: next_start(task, number),
                f"try {number} of `{task}` is followed by another",
            )
            for task, number in tries
        ]
        longest = max(starts) - killed_at
        print(f"{len(tries)} tries were interrupted, the last of them was tried again after {longest:.2f} s")
        assert longest < within

    def succeeded(self, task, number):
        row = self.cluster.tasks(self.run_id)[task]
        return (row.state, row.try_number) == ("success", number)

    def wait_until_gone(self, pids):
        self.cluster.wait_until(lambda: not any(map(is_alive, pids)), f"processes {pids} are gone")

    def check(self, **given):
        self.record.check(self.cluster, self.run_id, **given)


@pytest.fixture
def marathon(make_cluster, tmp_path):
    """Makes a marathon on a store; its members are still to be started."""

    def make(url=None, seconds=0.05, slow_seconds="", tasks=SOME):
        record = Record(tmp_path, tasks)
        settings = {"MARATHON_SECONDS": str(seconds), "MARATHON_SLOW_SECONDS": slow_seconds}
        cluster = make_cluster(url, {**record.settings, **settings})
        cluster.bring("marathon.py")
        return Marathon(cluster, record)

    return make


def test_a_task_process_and_a_zygote_die(marathon, prepared_url):
    """The slow task's process is killed twice, then the warm parent with all that run below it."""
    marathon = marathon(prepared_url, slow_seconds=f"{FOR_EVER} {FOR_EVER} {FOR_EVER}", tasks=MANY)
    server = marathon.cluster.standalone()
    marathon.start()
    for number in (1, 2):
        marathon.reach_slow_try(number)
        (pid,) = (line.pid for line in marathon.record.under_way() if line.task == SLOW)
        marathon.wait_for_next([(SLOW, number)], kill(pid), AT_ONCE_SECONDS)
    (zygote,) = server.zygotes()
    marathon.reach_slow_try(3)
    lines = marathon.record.under_way()
    killed_at = kill(zygote)
    marathon.wait_until_gone([zygote, *(line.pid for line in lines)])
    lost = [(line.task, line.number) for line in lines if not marathon.record.has_ended(line.task, line.number)]
    assert (SLOW, 3) in lost
    marathon.wait_for_next(lost, killed_at, AT_ONCE_SECONDS)
    marathon.check()
    assert server.process.poll() is None and "Traceback" not in server.stderr


def test_the_standalone_is_killed_and_started_again(marathon, prepared_url):
    """Once alone, so that its tasks must die by themselves, and once with everything below it."""
    marathon = marathon(prepared_url, slow_seconds=f"{FOR_EVER} {FOR_EVER}", tasks=MANY)
    server = marathon.cluster.standalone()
    marathon.start()
    for number, kill_it in ((1, Member.kill), (2, Member.kill_tree)):
        marathon.reach_slow_try(number)
        below = [process.pid for process in server.below()]
        killed_at = kill_it(server)
        marathon.wait_until_gone(below)
        lost = marathon.held_by()
        server = marathon.cluster.standalone()
        marathon.wait_for_next(lost, killed_at, RESCUE_SECONDS)
    marathon.check()


def test_an_agent_and_a_scheduler_are_killed(marathon, prepared_url):
    marathon = marathon(prepared_url, slow_seconds=FOR_EVER, tasks=MANY)
    cluster = marathon.cluster
    scheduler, _ = [cluster.scheduler() for _ in range(2)]
    agents = {name: cluster.agent("--name", name) for name in ("one", "other")}
    cluster.wait_for_members(agents=2, schedulers=2)
    marathon.start()
    marathon.reach(20)
    scheduler.kill()
    doomed = marathon.reach_slow_try()
    below = [process.pid for process in agents[doomed].below()]
    killed_at = agents[doomed].kill()
    lost = marathon.held_by(doomed)
    marathon.wait_for_next(lost, killed_at, RESCUE_SECONDS)
    marathon.wait_until_gone(below)
    marathon.check()


@pytest.mark.parametrize(("drain_seconds", "slow_seconds"), [("30", "2"), ("0", FOR_EVER)])
def test_a_stopped_agent_costs_no_try(marathon, prepared_postgres_url, drain_seconds, slow_seconds):
    """It finishes what runs, or hands it back."""
    marathon = marathon(prepared_postgres_url, slow_seconds=slow_seconds)
    cluster = marathon.cluster
    cluster.scheduler()
    agents = {name: cluster.agent("--name", name, "--drain-seconds", drain_seconds) for name in ("one", "other")}
    cluster.wait_for_members(agents=2)
    marathon.start()
    leaving = agents[marathon.reach_slow_try()]
    below = [process.pid for process in leaving.below()]
    if drain_seconds == "0":
        # Handed back, it is the same try again, and must not take for ever then.
        (marathon.record.folder / "hurry").touch()
    assert leaving.terminate() == 0
    marathon.wait_until_gone(below)
    marathon.check()
    tries = [one for rows in cluster.tries(marathon.run_id).values() for one in rows]
    assert {one.try_number for one in tries} == {1}
    handed_back = [one for one in tries if one.state != "success"]
    assert {one.state for one in handed_back} <= {"canceled"} and len(handed_back) <= 4
    assert bool(handed_back) == (drain_seconds == "0")


def test_an_agent_that_was_frozen_is_too_late(marathon, prepared_postgres_url):
    """Others run its tasks, even if it froze in the middle of a transaction; what it says then changes nothing."""
    marathon = marathon(prepared_postgres_url, slow_seconds=f"{FOR_EVER} 3")
    cluster = marathon.cluster
    cluster.scheduler()
    agents = {name: cluster.agent("--name", name) for name in ("one", "other")}
    cluster.wait_for_members(agents=2)
    marathon.start()
    name = marathon.reach_slow_try()
    frozen_at = agents[name].signal(signal.SIGSTOP)
    marathon.wait_for_next(marathon.held_by(name), frozen_at, FROZEN_SECONDS + 5.0)
    undead = [line.pid for line in marathon.record.under_way() if (line.task, line.number) == (SLOW, 1)]
    assert undead
    agents[name].signal(signal.SIGCONT)
    marathon.wait_until_gone(undead)
    marathon.check(may_overlap=True)
    rows = cluster.tries(marathon.run_id)[SLOW]
    assert [(one.try_number, one.state) for one in rows] == [(1, "failed"), (2, "success")]
    assert "lost its lease" in agents[name].stderr and "a stale result changed nothing" in agents[name].stderr


def test_what_a_frozen_agent_still_runs_is_ended(marathon, prepared_postgres_url):
    marathon = marathon(prepared_postgres_url, seconds=60)
    cluster = marathon.cluster
    cluster.scheduler()
    frozen = cluster.agent()
    marathon.start()
    pids = [line.pid for line in marathon.reach(0)]
    frozen.signal(signal.SIGSTOP)
    cluster.wait_until(lambda: not marathon.held_by(), "its tasks are taken from it")
    assert all(map(is_alive, pids))
    continued_at = frozen.signal(signal.SIGCONT)
    marathon.wait_until_gone(pids)
    assert time.monotonic() - continued_at < AT_ONCE_SECONDS


def test_the_database_is_restarted_and_crashes(marathon):
    with PostgresServer() as server:
        marathon = marathon(server.new_database(), tasks=MANY)
        cluster = marathon.cluster
        members = [cluster.scheduler(), cluster.agent(), cluster.agent()]
        cluster.wait_for_members(agents=2)
        marathon.start()
        marathon.reach(30)
        server.restart()
        marathon.reach(90)
        server.crash()
        server.start()
        marathon.check()
        assert [member.terminate() for member in members] == [0, 0, 0]
        assert not [member.name for member in members if "Traceback" in member.stderr]
        cluster.store.dispose()
