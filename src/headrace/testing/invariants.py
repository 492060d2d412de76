"""What must hold in every store at every moment, computed the slow way from nothing but its rows and events."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from headrace.definition import Workflow
from headrace.state import FINISHED, HELD, MOVES, Actor, State, Task
from headrace.store import Database
from headrace.store.sql import Sql
from headrace.store.task_rows import SELECTED, to_task
from headrace.testing.recounting import Violation, recount

EVENTS = Sql(
    """
    SELECT id, attempt_id, task_id, before, after, actor FROM event WHERE id > :last ORDER BY id
    """
)
TASKS = Sql(f"SELECT {SELECTED} FROM task WHERE attempt_id IN :ids[] ORDER BY id")
EDGES = Sql(
    """
    SELECT edge.upstream_id, edge.downstream_id, edge.is_setup
    FROM task JOIN edge ON edge.downstream_id = task.id WHERE task.attempt_id IN :ids[]
    """
)
ATTEMPTS = Sql(
    """
    SELECT attempt.id, attempt.state, attempt.reason, run.state, attempt.workflow_id, attempt.root_id
    FROM attempt JOIN run ON run.id = attempt.run_id WHERE attempt.id IN :ids[]
    """
)
ACTIVE = Sql(
    """
    SELECT task.pool, task.pool_slots, task.key, task.attempt_id, attempt.workflow_id
    FROM task JOIN attempt ON attempt.id = task.attempt_id WHERE task.state IN ('queued', 'running', 'restarting')
    """
)
TRIGGERS = Sql(
    """
    SELECT task_id FROM trigger WHERE attempt_id IN :ids[] AND NOT is_given_up
    UNION ALL SELECT task_id FROM question WHERE attempt_id IN :ids[] AND closed_at IS NULL
    """
)
LOST = Sql("SELECT id FROM agent WHERE is_lost")
RUNNING = Sql(
    """
    SELECT attempt.workflow_id, attempt.id, backfill.id, backfill.max_active_runs
    FROM attempt JOIN run ON run.id = attempt.run_id LEFT JOIN backfill ON backfill.id = run.backfill_id
    WHERE attempt.state = 'running'
    """
)
DOUBLES = Sql(
    """
    SELECT workflow_id, logical_at, count(*) FROM run WHERE logical_at IS NOT NULL
    GROUP BY workflow_id, logical_at HAVING count(*) > 1
    """
)
# Each end of a run that somebody wants to hear of has its errand, and no other has one.
RUN_ERRANDS = Sql(
    """
    SELECT attempt.id, attempt.workflow_id,
           (SELECT count(*) FROM event WHERE event.attempt_id = attempt.id AND event.task_id IS NULL
              AND event.after IN ('success', 'failed') AND event.actor <> 'user'
              AND coalesce(event.reason, '') NOT IN ('marked_success', 'marked_failed')),
           (SELECT count(*) FROM errand WHERE errand.attempt_id = attempt.id AND errand.kind = 'run_ended')
    FROM attempt
    """
)
ALL_ATTEMPTS = Sql("SELECT id FROM attempt")


class SeenEvent(NamedTuple):
    id: int
    attempt_id: int
    task_id: int | None
    before: str | None
    after: str
    actor: str


class Checker:
    """Follows the events of a store and compares them with its rows. Call `check` after every step."""

    def __init__(self, database: Database, pools: dict[str, int]) -> None:
        self._database = database
        self._pools = pools
        self.workflows: dict[int, Workflow] = {}
        self.is_reported: Callable[[int, int], bool] = lambda task_id, fence: True
        """Whether somebody may have reported the end of this claim."""
        self.events = 0
        self._last_event = 0
        self._changes = -1
        self._states: dict[int, str] = {}
        self._carried: set[int] = set()
        self._attempts: dict[int, str] = {}
        self._fences: Counter[int] = Counter()
        self._holders: dict[int, int | None] = {}
        self._reopened: set[int] = set()

    def check(self) -> list[SeenEvent]:
        """Raise a Violation if something is wrong; returns what happened since the last call."""
        with self._database.read() as tx:
            events = [SeenEvent(*row) for row in tx.run(EVENTS, {"last": self._last_event})]
            if not events:
                return events
            lost = {row[0] for row in tx.run(LOST)} if any(e.actor == Actor.RESCUER for e in events) else set()
            active = tx.run(ACTIVE)
            running = tx.run(RUNNING) if any(e.task_id is None for e in events) else []
        for event in events:
            self._follow(event, lost)
        self._last_event = events[-1].id
        self.events += len(events)
        self.check_rows({event.attempt_id for event in events})
        self._check_limits(active)
        self._check_active_runs(running)
        return events

    def has_news(self) -> bool:
        """Whether something may have changed since the last call. SQLite counts that, which is cheap to ask for."""
        if self._database.dialect != "sqlite":
            return True
        with self._database.read() as tx:
            driver: Any = tx.connection.connection.driver_connection
            before, self._changes = self._changes, driver.total_changes
        return bool(before != self._changes)

    def check_everything(self) -> None:
        """Compare every row with the events, also those of attempts in which nothing happened."""
        self.check()
        with self._database.read() as tx:
            ids = [row[0] for row in tx.run(ALL_ATTEMPTS)]
            doubles = tx.run(DOUBLES)
            errands = tx.run(RUN_ERRANDS)
        self.check_rows(ids)
        for attempt_id, workflow_id, ends, sent in errands:
            if sent != (ends if self.workflows[workflow_id].root.calls_back else 0):
                raise Violation(f"attempt {attempt_id} ended {ends} times, and {sent} errands tell of it")
        if doubles:
            raise Violation(f"logical times with more than one run (workflow, time, runs): {doubles}")

    # ---- events ------------------------------------------------------------------------------------------------

    def _follow(self, event: SeenEvent, lost: set[int]) -> None:
        if event.task_id is None:
            self._follow_attempt(event)
            return
        known = self._states.get(event.task_id, "none")
        if event.before != known:
            raise Violation(f"task {event.task_id} left `{event.before}`, but it was in `{known}`: {event}")
        move = MOVES.get((State(known), State(event.after)))
        if move is None or event.actor not in move.by:
            raise Violation(f"an illegal move: {event}")
        if known in HELD and event.after not in HELD:
            self._check_release(event, lost)
        # A trigger that ends its task counts as an execution of its own.
        is_ended_by_trigger = event.actor == Actor.TRIGGERER and event.after != State.SCHEDULED
        if event.after == State.QUEUED or is_ended_by_trigger:
            self._fences[event.task_id] += 1
        self._states[event.task_id] = event.after

    def _follow_attempt(self, event: SeenEvent) -> None:
        known = self._attempts.get(event.attempt_id, "queued")
        if event.before != known:
            raise Violation(f"attempt {event.attempt_id} left `{event.before}`, but it was `{known}`: {event}")
        if known not in ("queued", "running"):
            if event.actor != Actor.USER:
                raise Violation(f"an attempt that had ended was opened again: {event}")
            self._reopened.add(event.attempt_id)
        self._attempts[event.attempt_id] = event.after

    def _check_release(self, event: SeenEvent, lost: set[int]) -> None:
        """A try that is under way ends only by its own report, a lost lease, or the clock."""
        task_id = event.task_id or 0
        if event.actor == Actor.AGENT and not self.is_reported(task_id, self._fences[task_id]):
            raise Violation(f"claim {self._fences[task_id]} of task {task_id} still runs, yet its end is told: {event}")
        if event.actor == Actor.RESCUER and self._holders.get(task_id) not in lost:
            raise Violation(f"task {task_id} was taken from agent {self._holders.get(task_id)}, which lives: {event}")

    # ---- rows --------------------------------------------------------------------------------------------------

    def check_rows(self, attempt_ids: Iterable[int]) -> None:
        """Compare tasks, their counters and their attempts with what the events said."""
        parameters = {"ids": sorted(attempt_ids)}
        with self._database.read() as tx:
            tasks = {task.id: task for task in (to_task(row) for row in tx.run(TASKS, parameters))}
            edges = [(row[0], row[1], bool(row[2])) for row in tx.run(EDGES, parameters)]
            attempts = tx.run(ATTEMPTS, parameters)
            triggers = sorted(row[0] for row in tx.run(TRIGGERS, parameters))
        deferred = sorted(task.id for task in tasks.values() if task.state is State.DEFERRED)
        if triggers != deferred:
            raise Violation(f"tasks {deferred} wait for triggers or answers, and there are such for tasks {triggers}")
        for task in tasks.values():
            self._check_task(task)
        recount(tasks, edges, self._lockstep(tasks.values(), {row[0]: row[4] for row in attempts}))
        for attempt_id, state, reason, run_state, _, root_id in attempts:
            self._check_attempt(attempt_id, state, reason, run_state, tasks.get(root_id))

    def _lockstep(self, tasks: Iterable[Task], workflow_ids: dict[int, int]) -> dict[int, str]:
        """The words of the tasks that keep pace with others."""
        words = {
            (attempt_id, node.key): node.lockstep
            for attempt_id, workflow_id in workflow_ids.items()
            for node in self.workflows[workflow_id].nodes
            if node.lockstep
        }
        keys = ((task.id, (task.attempt_id, task.key)) for task in tasks)
        return {task_id: words[key] for task_id, key in keys if key in words}

    def _check_task(self, task: Task) -> None:
        if self._is_carried_over(task):
            self._carried.add(task.id)
            self._states[task.id] = task.state
        expected = self._states.get(task.id, "none")
        if task.state != expected:
            raise Violation(f"task `{task.name}` ({task.id}) is `{task.state}`, its events say `{expected}`")
        if task.fence != self._fences[task.id]:
            raise Violation(f"task {task.id} has fence {task.fence}, its events tell of {self._fences[task.id]} claims")
        if task.is_superseded and task.state not in FINISHED:
            raise Violation(f"task `{task.name}` ({task.id}) is superseded, yet `{task.state}`")
        if (task.agent_id is not None) != (task.state in HELD):
            raise Violation(f"task `{task.name}` ({task.id}) is `{task.state}` with agent {task.agent_id}")
        self._holders[task.id] = task.agent_id

    def _is_carried_over(self, task: Task) -> bool:
        """Whether an earlier attempt has done it: as a success, or as part of one, whatever became of that part."""
        if task.id in self._states or task.fence != 0:
            return False
        return task.state is State.SUCCESS or (task.state in FINISHED and task.parent_id in self._carried)

    def _check_attempt(
        self, attempt_id: int, state: str, reason: str | None, run_state: str, root: Task | None
    ) -> None:
        if state != self._attempts.get(attempt_id, "queued"):
            raise Violation(f"attempt {attempt_id} is `{state}`, its events say `{self._attempts.get(attempt_id)}`")
        if state in ("queued", "running") and run_state != state:
            raise Violation(f"attempt {attempt_id} is `{state}`, its run `{run_state}`")
        if root is not None and (root.state in FINISHED) != (state not in ("queued", "running")):
            raise Violation(f"attempt {attempt_id} is `{state}`, its root `{root.state}`")
        if reason == "deadlocked":
            raise Violation(f"attempt {attempt_id} came to a standstill")

    # ---- limits ------------------------------------------------------------------------------------------------

    def _check_limits(self, active: Sequence[tuple[str, int, str, int, int]]) -> None:
        used: Counter[str] = Counter()
        counts: Counter[tuple[int, int, str]] = Counter()
        for pool, slots, key, attempt_id, workflow_id in active:
            used[pool] += slots
            for scope in ((attempt_id, 0, ""), (0, workflow_id, ""), (attempt_id, 0, key), (0, workflow_id, key)):
                counts[scope] += 1
        for pool, slots in used.items():
            if slots > self._pools.get(pool, slots):
                raise Violation(f"pool `{pool}` has {self._pools[pool]} slots, {slots} are used")
        for _, _, key, attempt_id, workflow_id in active:
            self._check_task_limits(counts, key, attempt_id, workflow_id)

    def _check_task_limits(
        self, counts: Counter[tuple[int, int, str]], key: str, attempt_id: int, workflow_id: int
    ) -> None:
        workflow = self.workflows[workflow_id]
        of_run = workflow.max_active_tasks_scope == "run"
        node = next((node for node in workflow.nodes if node.key == key), None)
        limits = [(workflow.max_active_tasks, (attempt_id, 0, "") if of_run else (0, workflow_id, ""))]
        if node is not None:
            limits.append((node.max_active_per_run, (attempt_id, 0, key)))
            limits.append((node.max_active_per_workflow, (0, workflow_id, key)))
        for limit, scope in limits:
            if limit is not None and counts[scope] > limit:
                raise Violation(f"{counts[scope]} tasks of {scope} are active, the limit is {limit}")

    def _check_active_runs(self, running: Sequence[tuple[int, int, int | None, int | None]]) -> None:
        """Runs of a backfill have a limit of their own."""
        counts: Counter[tuple[int, int | None, int | None]] = Counter()
        for workflow_id, attempt_id, backfill_id, its_limit in running:
            limit = self.workflows[workflow_id].max_active_runs if backfill_id is None else its_limit
            # A person may open runs again beyond the limit; what the engine starts stays within it.
            counts[workflow_id, backfill_id, limit] += attempt_id not in self._reopened
        for (workflow_id, backfill_id, limit), count in counts.items():
            if limit is not None and count > limit:
                of = f"workflow {workflow_id}" if backfill_id is None else f"backfill {backfill_id}"
                raise Violation(f"{count} runs of {of} are active, the limit is {limit}")
