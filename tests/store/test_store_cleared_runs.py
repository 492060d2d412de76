"""A run that had ended and is cleared waits for its turn where the number of active runs is limited."""

from __future__ import annotations

from store_bench import Bench, flow, node

from headrace.state import State
from headrace.store import cancel_attempt, clear_tasks, get_attempt, get_run, latest_attempt, mark_tasks

ONE_AT_A_TIME = flow(node("a"), node("b", "a"), max_active_runs=1)


class Runs:
    """Runs of a workflow of which one may be active."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self.agent_id = bench.agent()
        self.run_ids: dict[int, int] = {}
        (self.workflow_id,) = bench.save(ONE_AT_A_TIME)

    def start(self, key: str) -> int:
        run_id = self.bench.create(self.workflow_id, key)
        self.bench.activate(self.workflow_id)
        with self.bench.store.read() as tx:
            attempt_id = latest_attempt(tx, run_id)
        self.run_ids[attempt_id] = run_id
        return attempt_id

    def finish(self) -> list[str]:
        """Run everything that can be claimed; its names."""
        done = []
        while claimed := self.bench.claim(self.agent_id):
            for task in claimed:
                self.bench.end(task)
                done.append(task.key)
        return done

    def clear(self, attempt_id: int, *keys: str) -> None:
        ids = [task.id for key, task in self.bench.tasks(attempt_id).items() if key in keys]
        self.bench.store.transact(lambda tx: clear_tasks(tx, attempt_id, ids, self.bench.now))

    def state(self, attempt_id: int) -> tuple[str, str]:
        """Of the attempt and of its run."""
        run_id = self.run_ids[attempt_id]
        with self.bench.store.read() as tx:
            return get_attempt(tx, run_id, 1).state, get_run(tx, run_id).state


def test_it_is_queued_behind_the_run_that_is_active_and_goes_on_after_it(bench):
    runs = Runs(bench)
    first = runs.start("one")
    runs.finish()
    second = runs.start("two")
    runs.clear(first, "b")
    assert runs.state(first) == ("queued", "queued")
    assert runs.state(second) == ("running", "running")
    assert runs.finish() == ["a", "b"]
    assert runs.state(second)[0] == "success"
    bench.activate(runs.workflow_id)
    assert runs.state(first) == ("running", "running")
    assert runs.finish() == ["b"]
    assert runs.state(first) == ("success", "success")


def test_with_room_it_goes_on_at_once(bench):
    runs = Runs(bench)
    first = runs.start("one")
    runs.finish()
    runs.clear(first, "a", "b")
    assert runs.state(first) == ("running", "running")
    assert runs.finish() == ["a", "b"]


def test_while_it_waits_nothing_of_it_opens_whatever_people_ask_for(bench):
    runs = Runs(bench)
    first = runs.start("one")
    runs.finish()
    second = runs.start("two")
    runs.clear(first, "b")
    runs.clear(first, "a", "b")
    (a,) = (task for key, task in bench.tasks(first).items() if key == "a")
    bench.store.transact(lambda tx: mark_tasks(tx, first, [a.id], State.SUCCESS, bench.now, []))
    assert {task.attempt_id for task in bench.claim(runs.agent_id)} == {second}
    assert runs.state(first) == ("queued", "queued")


def test_it_can_be_canceled_while_it_waits(bench):
    runs = Runs(bench)
    first = runs.start("one")
    runs.finish()
    runs.start("two")
    runs.clear(first, "b")
    bench.store.transact(lambda tx: cancel_attempt(tx, first, bench.now))
    assert runs.state(first) == ("canceled", "canceled")
