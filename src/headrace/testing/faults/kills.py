"""Processes that die, stop or freeze."""

from __future__ import annotations

import signal
from collections import Counter
from collections.abc import Sequence

from headrace.testing.faults.arena import DRAIN_SECONDS, Arena
from headrace.testing.faults.checker import Wrong
from headrace.testing.faults.cluster import LEASE_SECONDS, NeverHappened
from headrace.testing.faults.fault import NOBODY, Fault, Interrupted
from headrace.testing.faults.history import History
from headrace.testing.faults.members import kill
from headrace.testing.faults.record import Line
from headrace.testing.faults.sightings import is_given_up, runs_triggers

FLAKY = ("second_time", "+nested+flaky")
"""Tasks whose first try fails by itself."""


def kill_agent(arena: Arena) -> Interrupted:
    """Again, if everything below it was at its end before the signal came."""

    def killed() -> Interrupted | None:
        agent, lines = arena.wait_for_work()
        found = _interrupted(arena, lines, agent.kill())
        if found is None:
            arena.replenish()
        return found

    return arena.wait_under_load(killed, "an agent is killed with tasks in the middle")


def _interrupted(arena: Arena, lines: Sequence[Line], at: float) -> Interrupted | None:
    """The executions that did not come to their end, once their processes are gone."""
    record = arena.load.record
    arena.cluster.wait_until(lambda: not set(lines) & set(record.under_way()), "what was below it is gone")
    cut_short = [line for line in lines if not record.came_to_its_end(line)]
    return Interrupted(cut_short, at) if cut_short else None


def kill_scheduler(arena: Arena) -> Interrupted:
    arena.cluster.running("scheduler")[0].kill()
    return NOBODY


def kill_triggerer(arena: Arena) -> Interrupted:
    triggerer = arena.cluster.running("triggerer")[0]
    arena.wait_under_load(lambda: runs_triggers(arena.cluster.store, triggerer), f"{triggerer.name} runs a trigger")
    triggerer.kill()
    return NOBODY


def kill_zygote(arena: Arena) -> Interrupted:
    def killed() -> Interrupted | None:
        agent, lines = arena.wait_for_work()
        times = [kill(pid) for pid in agent.zygotes()]
        return Interrupted(lines, min(times), times=len(times)) if times else None

    return arena.wait_under_load(killed, "an agent at work has a warm parent that can be killed")


def kill_task(arena: Arena) -> Interrupted:
    """Again, if it was at its end before the signal came."""

    def killed() -> Interrupted | None:
        _, (line, *_) = arena.wait_for_work()
        return _interrupted(arena, [line], kill(line.pid))

    return arena.wait_under_load(killed, "a task is killed in the middle")


def drain_agent(arena: Arena) -> Interrupted:
    agent, _ = arena.wait_for_work()
    code = agent.terminate()
    if code != 0:
        raise NeverHappened(f"{agent.name} was asked to stop and ended with {code}:\n{agent.stderr}")
    return NOBODY


def freeze_agent(arena: Arena) -> Interrupted:
    """Until others have its tasks and one of its own processes is done, so that there is a late result."""
    return arena.wait_under_load(lambda: _freeze(arena), "an agent is frozen for longer than its lease")


def _freeze(arena: Arena) -> Interrupted | None:
    agent, lines = arena.wait_for_work()
    at = agent.signal(signal.SIGSTOP)
    record, wait_until = arena.load.record, arena.cluster.wait_until
    try:
        wait_until(lambda: is_given_up(arena.cluster.store, agent), f"{agent.name} is given up", 4 * LEASE_SECONDS)
        wait_until(lambda: any(record.came_to_its_end(line) for line in lines), f"{agent.name} has a late result")
    except NeverHappened:
        return None  # On SQLite, one that was stopped in the middle of a transaction keeps everybody else waiting.
    finally:
        agent.signal(signal.SIGCONT)
    return Interrupted(lines, at)


def no_try_was_lost(arena: Arena) -> list[Wrong]:
    """What an agent hands back when it is asked to stop is the same try again."""
    history = History.read(arena.cluster.store)
    names = {task.id: task.name for task in history.tasks}
    failed = [one for one in history.executions if one.state == "failed" and names[one.task_id] not in FLAKY]
    return [Wrong("lost", f"try {one.number} of `{names[one.task_id]}` failed") for one in failed]


def tries_were_handed_back(arena: Arena) -> list[Wrong]:
    history = History.read(arena.cluster.store)
    if not any(one.state == "canceled" for one in history.executions):
        raise NeverHappened(f"no agent has handed anything back: {Counter(one.state for one in history.executions)}")
    return no_try_was_lost(arena)


KILLS = (
    Fault("kill -9 of an agent", "its tasks are tried again", kill_agent),
    Fault("kill -9 of a scheduler", "another one goes on", kill_scheduler),
    Fault("kill -9 of a triggerer", "its triggers run elsewhere", kill_triggerer),
    Fault("kill -9 of a zygote", "its tasks are tried again at once", kill_zygote),
    Fault("kill -9 of a task", "it is tried again at once", kill_task),
    Fault("an agent is drained", "its tasks finish, no try is lost", drain_agent, check=no_try_was_lost),
    Fault(
        "an agent is drained in haste",
        "its tasks are handed back, no try is lost",
        drain_agent,
        task_seconds=3 * DRAIN_SECONDS,
        check=tries_were_handed_back,
    ),
    Fault(
        "an agent is frozen",
        "its late results bounce, its processes end",
        freeze_agent,
        # While it is frozen nobody can end what runs below it.
        not_promised=frozenset({"overlapped", "over limit"}),
        task_seconds=3.0,
    ),
)
