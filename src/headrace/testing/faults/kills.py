"""Processes that die, stop or freeze."""

from __future__ import annotations

import signal
import time

from headrace.testing.faults.arena import Arena
from headrace.testing.faults.checker import Wrong
from headrace.testing.faults.cluster import LEASE_SECONDS, NeverHappened
from headrace.testing.faults.fault import NOBODY, Fault, Interrupted
from headrace.testing.faults.history import History
from headrace.testing.faults.members import kill

FLAKY = ("second_time", "+nested+flaky")
"""Tasks whose first try fails by itself."""


def kill_agent(arena: Arena) -> Interrupted:
    agent, lines = arena.wait_for_work()
    return Interrupted(lines, agent.kill())


def kill_scheduler(arena: Arena) -> Interrupted:
    arena.cluster.running("scheduler")[0].kill()
    return NOBODY


def kill_triggerer(arena: Arena) -> Interrupted:
    arena.cluster.running("triggerer")[0].kill()
    return NOBODY


def kill_zygote(arena: Arena) -> Interrupted:
    agent, lines = arena.wait_for_work()
    at = min((kill(pid) for pid in agent.zygotes()), default=time.monotonic())
    return Interrupted(lines, at)


def kill_task(arena: Arena) -> Interrupted:
    _, lines = arena.wait_for_work()
    return Interrupted(lines[:1], kill(lines[0].pid))


def drain_agent(arena: Arena) -> Interrupted:
    agent, _ = arena.wait_for_work()
    code = agent.terminate()
    if code != 0:
        raise NeverHappened(f"{agent.name} was asked to stop and ended with {code}:\n{agent.stderr}")
    return NOBODY


def freeze_agent(arena: Arena) -> Interrupted:
    agent, _ = arena.wait_for_work()
    agent.signal(signal.SIGSTOP)
    time.sleep(2 * LEASE_SECONDS)
    agent.signal(signal.SIGCONT)
    return NOBODY


def no_try_was_lost(arena: Arena) -> list[Wrong]:
    """What an agent hands back when it is asked to stop is the same try again."""
    history = History.read(arena.cluster.store)
    names = {task.id: task.name for task in history.tasks}
    failed = [one for one in history.executions if one.state == "failed" and names[one.task_id] not in FLAKY]
    return [Wrong("lost", f"try {one.number} of `{names[one.task_id]}` failed") for one in failed]


KILLS = (
    Fault("kill -9 of an agent", "its tasks are tried again", kill_agent),
    Fault("kill -9 of a scheduler", "another one goes on", kill_scheduler),
    Fault("kill -9 of a triggerer", "its triggers run elsewhere", kill_triggerer),
    Fault("kill -9 of a zygote", "its tasks are tried again at once", kill_zygote),
    Fault("kill -9 of a task", "it is tried again at once", kill_task),
    Fault("an agent is drained", "no try is lost", drain_agent, check=no_try_was_lost),
    Fault(
        "an agent is frozen",
        "its late results bounce, its processes end",
        freeze_agent,
        # While it is frozen nobody can end what runs below it.
        not_promised=frozenset({"overlapped", "over limit"}),
        task_seconds=3.0,
    ),
)
