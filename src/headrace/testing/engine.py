"""The whole engine in one test: the real store, scheduler services and agent, and a clock that the test moves.

engine = Engine(tmp_path)
run = engine.start_dig('''
    +load:
      sh>: exit 1
      _retry: {limit: 1, interval: 30}
''')
engine.settle()
assert run.story("+load") == ["scheduled", "queued", "running", "up_for_retry"]
"""

from __future__ import annotations

import hashlib
import textwrap
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec

from headrace.actions.trigger import create_manual_run
from headrace.agent import Agent, AgentOptions, Broker
from headrace.authoring import load_file
from headrace.clock import ManualClock
from headrace.definition import Workflow, check_workflow
from headrace.errors import DefinitionError
from headrace.executor import InlineExecutor
from headrace.handoff import RETURN_VALUE, Channel, TaskRequest, TaskResult
from headrace.projects import ParsedFile
from headrace.projects.saving import save_parsed
from headrace.runner.programs import run_task
from headrace.scheduler import (
    DeadlineKeeper,
    PastFollower,
    Rescuer,
    Reviver,
    RunActivator,
    RunStarter,
    Service,
    Waker,
)
from headrace.settings import NotificationSettings
from headrace.store import Store, Transaction
from headrace.store.sql import Sql
from headrace.testing.empty_database import new_sqlite
from headrace.testing.run import Run

Action = Callable[[TaskRequest], Any]
"""Stands for a task's code. A TaskResult is taken as it is, None is a bare success, anything else is its result."""

START = datetime(2026, 2, 3, 4, 5, 6, tzinfo=UTC)
LAST_EVENT = Sql("SELECT max(id) FROM event")
_ROUNDS = 10_000


class Engine:
    """Nothing happens by itself: `settle` lets everybody work, `advance` moves the clock."""

    def __init__(
        self,
        folder: Path,
        url: str | None = None,
        *,
        slots: int = 8,
        start: datetime = START,
        notification: NotificationSettings | None = None,
        max_tasks_per_run: int = 10_000,
    ) -> None:
        self.folder = folder
        self._notification = notification
        self.clock = ManualClock(start)
        self.store = Store(url or new_sqlite(folder / "engine.db"))
        self._project = folder / "project"
        self._project.mkdir(parents=True, exist_ok=True)
        self._actions: dict[str, Mapping[str, Action]] = {}
        self._runners: dict[str, Callable[[TaskRequest, Channel], TaskResult]] = {}
        self.services: list[Service] = [
            Rescuer(self.store), Waker(self.store), DeadlineKeeper(self.store), Reviver(self.store),
            PastFollower(self.store), RunStarter(self.store), RunActivator(self.store),
        ]  # fmt: skip
        self._max_tasks_per_run = max_tasks_per_run
        self.agent = self._start_agent(slots)

    def _start_agent(self, slots: int) -> Agent:
        broker = Broker(self.store, self.clock, self._notification)
        executor = InlineExecutor(broker, self._run_task)
        options = AgentOptions(slots=slots, name="engine", retry_seconds=0.0, max_tasks_per_run=self._max_tasks_per_run)
        logs = self.folder / "logs"
        agent = Agent(self.store, self.clock, executor, InlineExecutor(broker), logs, options)
        agent.start(renews_by_itself=False)
        return agent

    def close(self) -> None:
        self.store.dispose()

    # ---- workflows and runs ----------------------------------------------------------------------------------------

    def start(self, workflow: Workflow, actions: Mapping[str, Action] | None = None, **options: Any) -> Run:
        """Start a run of a definition. `actions` are the tasks' code by key; a task without one succeeds."""
        return self._start(self.save(workflow, actions), workflow, **options)

    def start_dag(self, source: str, workflow: str | None = None, **options: Any) -> Run:
        """Start a run of a Python DAG, given as the text of its file; `workflow` chooses one of several."""
        return self._start_file("dags.py", source, workflow, **options)

    def start_dags(self, source: str, **options: Any) -> dict[str, Run]:
        """Start a run of each DAG of a file, given as the file's text."""
        workflows, ids = self._save_file("dags.py", source)
        return {workflow.name: self._start(ids[workflow.name], workflow, **options) for workflow in workflows}

    def start_dig(self, text: str, name: str = "main", **options: Any) -> Run:
        """Start a run of a `.dig` workflow, given as the text of its file."""
        return self._start_file(f"{name}.dig", text, name, **options)

    def save(self, workflow: Workflow, actions: Mapping[str, Action] | None = None) -> int:
        """Save a definition, without a run but with its schedule; returns its id."""
        self._actions[workflow.name] = actions or {}
        digest = hashlib.sha256(msgspec.json.encode(workflow)).hexdigest()
        return self._save(f"{workflow.name}.py", digest, (check_workflow(workflow),))[workflow.name]

    def run_tasks_with(self, workflow: str, run: Callable[[TaskRequest, Channel], TaskResult]) -> None:
        """Have the tasks of a workflow run by a function of yours."""
        self._runners[workflow] = run

    def write(self, file: str, text: str) -> Path:
        """Put a file into the project, for code and queries that tasks use."""
        path = self._project / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text))
        return path

    def _start_file(self, file: str, text: str, name: str | None, **options: Any) -> Run:
        workflows, ids = self._save_file(file, text)
        chosen = next(one for one in workflows if name is None or one.name == name)
        return self._start(ids[chosen.name], chosen, **options)

    def _save_file(self, file: str, text: str) -> tuple[tuple[Workflow, ...], dict[str, int]]:
        path = self.write(file, text)
        workflows = load_file(self._project, file).workflows
        return workflows, self._save(file, hashlib.sha256(path.read_bytes()).hexdigest(), workflows)

    def _save(self, file: str, digest: str, workflows: tuple[Workflow, ...]) -> dict[str, int]:
        parsed = ParsedFile(file=file, digest=digest, workflows=workflows)
        (saved,) = save_parsed(self.store, "project", self._project, [parsed], self.clock.now())
        if saved.error is not None:
            raise DefinitionError(saved.error.message, hint=saved.error.hint, file=file, line=saved.error.line)
        return {one.name: one.id for one in saved.workflows}

    def _start(
        self,
        workflow_id: int,
        workflow: Workflow,
        *,
        params: dict[str, Any] | None = None,
        session: str | None = None,
        run_key: str | None = None,
    ) -> Run:
        def work(tx: Transaction) -> int:
            row = create_manual_run(tx, workflow_id, workflow, self.clock.now(), params or {}, session, run_key)
            return row.id

        return Run(self.store, self.clock, self.store.transact(work), self.folder / "logs")

    # ---- time ------------------------------------------------------------------------------------------------------

    def settle(self) -> None:
        """Let the services and the agent work until nothing moves any more. The clock stands still."""
        for _ in range(_ROUNDS):
            before = self._last_event()
            self.tick()
            self.agent.wake()
            self.agent.step(0.0)
            if self._last_event() == before and not self.agent.is_busy:
                return
        raise AssertionError(f"the engine did not come to rest within {_ROUNDS} rounds")

    def tick(self) -> None:
        """Let only the services work, until nothing is due any more."""
        while sum(service.tick(self.clock.now()) for service in self.services):
            pass

    def advance(self, seconds: float = 0.0, **more: float) -> None:
        """Move the clock, renew the agent's lease and let the services do what became due; tasks run in `settle`."""
        self.clock.advance(timedelta(seconds=seconds, **more))
        self.agent.renew()
        self.tick()

    def _last_event(self) -> int:
        with self.store.read() as tx:
            return int(tx.run(LAST_EVENT)[0][0] or 0)

    # ---- tasks -----------------------------------------------------------------------------------------------------

    def _run_task(self, request: TaskRequest, channel: Channel) -> TaskResult:
        runner = self._runners.get(request.run.workflow)
        if runner is not None:
            return runner(request, channel)
        actions = self._actions.get(request.run.workflow)
        if actions is None:
            return run_task(request, channel)
        action = actions.get(request.key if request.errand is None else request.errand.kind)
        return _result(request, action(request) if action is not None else None)


def _result(request: TaskRequest, returned: Any) -> TaskResult:
    if isinstance(returned, TaskResult):
        return returned
    values, lengths = {}, {}
    if returned is not None:
        values[RETURN_VALUE] = msgspec.Raw(msgspec.json.encode(returned))
        if isinstance(returned, list | dict):
            lengths[RETURN_VALUE] = len(returned)
    return TaskResult(task_id=request.task_id, fence=request.fence, outcome="success", values=values, lengths=lengths)
