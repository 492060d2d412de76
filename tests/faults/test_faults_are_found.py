"""The harness can fail: with a guarantee taken away, it reports what that guarantee prevents."""

from __future__ import annotations

import signal

from headrace.testing.faults.__main__ import bring_about
from headrace.testing.faults.arena import open_broken_arena
from headrace.testing.faults.cluster import LEASE_SECONDS
from headrace.testing.faults.fault import Fault, conclude


def kinds_of(arena):
    return {wrong.kind for wrong in conclude(arena, [], []).failures}


def test_a_late_result_that_counts_is_found():
    """The first try's result is taken for the second one's, which is still under way."""
    with open_broken_arena("fence", is_held=True) as arena:
        agent, (line,) = arena.wait_for_work()
        agent.signal(signal.SIGSTOP)
        record, wait_until = arena.load.record, arena.cluster.wait_until
        wait_until(lambda: record.next_start(line.name, line.at), "another agent tries the task again")
        arena.load.let_go(1)
        wait_until(lambda: record.came_to_its_end(line), "the first try has ended")
        agent.signal(signal.SIGCONT)
        assert "lost" in kinds_of(arena)


def test_a_fault_that_does_not_come_about_is_a_failure():
    def never(arena):
        arena.cluster.wait_until(lambda: False, "pigs fly", seconds=0.0)

    def mistake(arena):
        raise ZeroDivisionError("the harness itself is wrong")

    for inject, said in ((never, "in vain until pigs fly"), (mistake, "the harness itself is wrong")):
        outcome = bring_about(Fault("a fault", "nothing", inject), "sqlite")
        assert outcome.injected == 0 and [said in wrong.what for wrong in outcome.failures] == [True]


def test_two_runs_for_one_time_are_found():
    with open_broken_arena("unique_runs") as arena:
        assert "duplicated" in kinds_of(arena)


def test_a_clock_that_is_not_corrected_is_found():
    """On SQLite there is no other host's clock to go by, so that the wrong one counts."""
    with open_broken_arena("", ticks=20, HARNESS_CLOCK_SECONDS="300") as arena:
        assert "illegal" in kinds_of(arena)


def test_a_lease_that_is_not_renewed_is_found():
    """A live agent's task is given to another one."""
    with open_broken_arena("renewal", task_seconds=2 * LEASE_SECONDS) as arena:
        lines = arena.load.record.lines
        arena.cluster.wait_until(lambda: any(line.what != "start" for line in lines()), "a task notices something")
        assert "overlapped" in {wrong.kind for wrong in arena.load.check(arena.cluster.store)}
