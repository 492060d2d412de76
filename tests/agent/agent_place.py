"""A store with agents on it whose tries take as long as a test says."""

from __future__ import annotations

from headrace.agent import Agent, AgentOptions, Broker
from headrace.clock import ManualClock, to_micros
from headrace.definition import Node, Workflow
from headrace.executor import InlineExecutor
from headrace.handoff import TaskResult
from headrace.store import (
    NewRun,
    Store,
    create_run,
    ensure_project,
    latest_attempt,
    list_tasks,
    list_tries,
    save_file,
    start_queued_runs,
)
from headrace.testing.nodes import START
from headrace.testing.simulated_faults import SimulatedExecutor

SLOTS = 2
LONG = 3600.0


class Place:
    """A store with a run of independent tasks, agents on it, and how long the tries of each task take."""

    def __init__(self, url, folder):
        self.store, self.folder = Store(url), folder
        self.clock = ManualClock(START)
        self.seconds = {}
        self.executors = []

    @property
    def now(self):
        return to_micros(self.clock.now())

    def start_run(self, *keys, name="w", **fields):
        """Of independent tasks; `tasks` and `tries` are those of the run that was started last."""

        def work(tx):
            nodes = [Node(key="", kind="group"), *(Node(key=key, parent="", operator="x", **fields) for key in keys)]
            flow = Workflow(name=name, language="python", nodes=tuple(nodes))
            (saved,) = save_file(tx, ensure_project(tx, "p", "/", self.now), f"{name}.py", "1", [flow], self.now)
            run_id = create_run(tx, NewRun(saved.id, "r1"), self.now)
            start_queued_runs(tx, saved.id, self.now)
            return latest_attempt(tx, run_id)

        self.attempt_id = self.store.transact(work)

    def agent(self, name="one", processors=None, **options):
        executor = SimulatedExecutor(self.clock, self._decide, SLOTS, {})
        self.executors.append(executor)
        chosen = AgentOptions(slots=SLOTS, name=name, lease_seconds=10_000.0, **options)
        inline = InlineExecutor(Broker(self.store))
        agent = Agent(self.store, self.clock, executor, inline, self.folder, chosen, processors)
        agent.start(renews_by_itself=False)
        return agent

    def _decide(self, request):
        result = TaskResult(task_id=request.task_id, fence=request.fence, outcome="success")
        return self.seconds.get(request.key, 0.0), result

    def tasks(self, *states):
        """The keys of tasks in these states."""
        with self.store.read() as tx:
            found = [one for one in list_tasks(tx, self.attempt_id) if one.kind == "task"]
        return [one.key for one in found if one.state in states]

    def tries(self):
        with self.store.read() as tx:
            tasks = [one for one in list_tasks(tx, self.attempt_id) if one.kind == "task"]
            return {one.key: [(t.try_number, t.state) for t in list_tries(tx, one.id)] for one in tasks}
