"""What people look at: workflows, runs, tasks, tries, files with mistakes, agents, pools. Read only, in pages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from headrace.handoff import TaskError
from headrace.store.database import Transaction
from headrace.store.sql import Sql

PAGE = 50
"""How many rows a list shows unless somebody asks for more."""

_ANY_ID = 2**62

_WORKFLOW = f"""
    SELECT workflow.id, project.name, workflow.name, workflow.file, workflow.is_paused, workflow.is_gone,
           schedule.next_run_at, (
             SELECT run.id FROM run
             WHERE (run.workflow_id, run.id) >= (workflow.id, 0)
               AND (run.workflow_id, run.id) < (workflow.id, {_ANY_ID}) AND run.id >= 0
             ORDER BY run.workflow_id DESC, run.id DESC LIMIT 1
           )
    FROM workflow JOIN project ON project.id = workflow.project_id
    LEFT JOIN schedule ON schedule.workflow_id = workflow.id
"""
_PRESENT = "workflow.id > :after AND NOT workflow.is_gone ORDER BY workflow.id LIMIT :limit"
WORKFLOWS = Sql(f"{_WORKFLOW} WHERE {_PRESENT}")
WORKFLOWS_OF_PROJECT = Sql(f"{_WORKFLOW} WHERE workflow.project_id = :project_id AND {_PRESENT}")
WORKFLOWS_BY_NAME = Sql(f"{_WORKFLOW} WHERE workflow.name = :name ORDER BY workflow.is_gone, workflow.id")
WORKFLOW_OF_PROJECT = Sql(f"{_WORKFLOW} WHERE workflow.project_id = :project_id AND workflow.name = :name")
WORKFLOW_NAMES = Sql("SELECT DISTINCT name FROM workflow WHERE NOT is_gone")
VERSION_OF_ATTEMPT = Sql("SELECT workflow_version_id FROM attempt WHERE id = :id")
DEFINITION = Sql("SELECT current_version_id FROM workflow WHERE id = :id")

_RUN = """
    SELECT run.id, run.workflow_id, workflow.name, run.key, run.type, run.state, run.reason, run.logical_at,
           run.run_after, run.params, run.created_at, run.started_at, run.ended_at, attempt.id, attempt.number,
           attempt.is_cancel_requested, attempt.max_active_runs, attempt.max_active_tasks,
           attempt.max_active_tasks_scope, workflow.is_paused, project.name, run.note, run.backfill_id,
           run.partition_key, run.partition_at
    FROM run JOIN workflow ON workflow.id = run.workflow_id JOIN project ON project.id = workflow.project_id
    JOIN attempt ON attempt.id = (SELECT max(newest.id) FROM attempt AS newest WHERE newest.run_id = run.id)
"""
RUNS = Sql(f"{_RUN} WHERE run.id < :before ORDER BY run.id DESC LIMIT :limit")
# As a range of pairs: otherwise PostgreSQL may look for a workflow's runs among those of all others, newest first, and
# read them all where the workflow has not run for long.
_OF_WORKFLOW = f"""
    {_RUN} WHERE (run.workflow_id, run.id) >= (:workflow_id, 0) AND (run.workflow_id, run.id) < (:workflow_id, :before)
      AND run.id >= 0
"""
_NEWEST_OF_WORKFLOW = "ORDER BY run.workflow_id DESC, run.id DESC LIMIT :limit"
RUNS_OF_WORKFLOW = Sql(f"{_OF_WORKFLOW} {_NEWEST_OF_WORKFLOW}")
RUNS_OF_PROJECT = Sql(
    f"{_RUN} WHERE workflow.project_id = :project_id AND run.id < :before ORDER BY run.id DESC LIMIT :limit"
)
_CHOSEN = """
      AND (:state = '' OR run.state = :state) AND (:type = '' OR run.type = :type)
      AND (:backfill_id = 0 OR run.backfill_id = :backfill_id)
      AND (:partition_key = '' OR run.partition_key = :partition_key)
      AND (CAST(:since AS bigint) IS NULL OR run.logical_at >= :since)
      AND (CAST(:until AS bigint) IS NULL OR run.logical_at <= :until)
"""
CHOSEN_RUNS = Sql(f"{_RUN} WHERE run.id < :before {_CHOSEN} ORDER BY run.id DESC LIMIT :limit")
CHOSEN_RUNS_OF_WORKFLOW = Sql(f"{_OF_WORKFLOW} {_CHOSEN} {_NEWEST_OF_WORKFLOW}")
ACTIVE_RUNS = Sql(
    f"""
    {_RUN} WHERE run.workflow_id = :workflow_id AND run.state IN ('queued', 'running') AND run.state = 'running'
      AND coalesce(run.backfill_id, 0) = :backfill_id ORDER BY run.id LIMIT :limit
    """
)
RUN = Sql(f"{_RUN} WHERE run.id = :id")
RUNS_AROUND = Sql(
    f"""{_RUN} WHERE run.workflow_id = :workflow_id AND run.logical_at >= :since AND run.logical_at <= :until
        AND run.id <> :id AND attempt.root_id IS NOT NULL ORDER BY run.logical_at, run.id"""
)

_TASK = """
    SELECT task.id, task.key, task.map_index, task.kind, task.operator, task.state, task.try_number, task.max_tries,
           task.parent_id, task.origin_id, task.children, task.children_open, task.trigger_rule, task.queue, task.pool,
           task.pool_slots, task.due_at, task.scheduled_at, task.started_at, task.ended_at, task.error, task.agent_id,
           agent.name, task.fence
    FROM task LEFT JOIN agent ON agent.id = task.agent_id
"""
TASKS = Sql(
    f"{_TASK} WHERE task.attempt_id = :attempt_id AND NOT task.is_superseded AND task.id > :after"
    " ORDER BY task.id LIMIT :limit"
)
UNFINISHED_TASKS = Sql(
    f"""{_TASK} WHERE task.attempt_id = :attempt_id AND NOT task.is_superseded AND task.state NOT IN
        ('success', 'failed', 'skipped', 'upstream_failed', 'canceled', 'removed') ORDER BY task.id"""
)
FAILED_TASKS = Sql(
    f"{_TASK} WHERE task.attempt_id = :attempt_id AND NOT task.is_superseded AND task.state = 'failed' ORDER BY task.id"
)
TASKS_BY_KEY = Sql(
    f"{_TASK} WHERE task.attempt_id = :attempt_id AND NOT task.is_superseded AND task.key = :key"
    " ORDER BY task.map_index"
)
TASKS_BY_ID = Sql(f"{_TASK} WHERE task.id IN :ids[] ORDER BY task.id")
TASK_KEYS = Sql("SELECT DISTINCT key FROM task WHERE attempt_id = :attempt_id AND NOT is_superseded")
UPSTREAM = Sql(
    f"""{_TASK} WHERE task.id [[sqlite: IN]] [[postgres: = ANY(ARRAY]]
        (SELECT edge.upstream_id FROM edge WHERE edge.downstream_id = :id) [[postgres: )]]
        AND NOT task.is_superseded ORDER BY task.id"""
)
EDGES = Sql(
    """
    SELECT edge.upstream_id, edge.downstream_id FROM edge JOIN task ON task.id = edge.downstream_id
    WHERE task.attempt_id = :attempt_id AND NOT task.is_superseded
    """
)
TRIES = Sql(
    """
    SELECT try_number, fence, state, started_at, ended_at, error, log FROM try WHERE task_id = :task_id ORDER BY fence
    """
)
EVENTS = Sql(
    """
    SELECT event.id, event.task_id, event.before, event.after, event.try_number, event.at, event.reason
    FROM event WHERE event.attempt_id = :attempt_id AND event.id > :after ORDER BY event.id LIMIT :limit
    """
)
LAST_REASON = Sql(
    "SELECT reason FROM event WHERE attempt_id = :attempt_id AND task_id = :task_id ORDER BY id DESC LIMIT 1"
)
RUN_CHANGES = Sql(
    """
    SELECT event.id, attempt.run_id, workflow.name, event.after, event.reason, attempt.id
    FROM event JOIN attempt ON attempt.id = event.attempt_id JOIN workflow ON workflow.id = attempt.workflow_id
    WHERE event.id > :after AND event.task_id IS NULL ORDER BY event.id
    """
)
LAST_EVENT = Sql("SELECT coalesce(max(id), 0) FROM event")
SOURCE_ERRORS = Sql(
    """
    SELECT source_error.id, project.name, project.root, source_error.file, source_error.line, source_error.message,
           source_error.hint, source_error.detail, source_error.at
    FROM source_error JOIN project ON project.id = source_error.project_id
    WHERE source_error.id > :after ORDER BY source_error.id LIMIT :limit
    """
)
LIVE_AGENTS = Sql(
    """
    SELECT agent.id, agent.kind, agent.name, agent.slots, agent.queues, agent.renewed_at, agent.lease_until,
           (SELECT count(*) FROM task
            WHERE task.agent_id = agent.id AND task.state IN ('queued', 'running', 'restarting')),
           agent.stopping_at
    FROM agent WHERE NOT agent.is_lost AND agent.lease_until >= :now ORDER BY agent.id
    """
)
SILENT_AGENTS = Sql(
    """
    SELECT DISTINCT agent.id, agent.name, agent.renewed_at FROM agent JOIN task ON task.agent_id = agent.id
    WHERE task.attempt_id = :attempt_id AND task.state IN ('queued', 'running', 'restarting')
      AND (agent.is_lost OR agent.lease_until < :now)
    """
)
POOLS = Sql(
    """
    SELECT pool.name, pool.slots,
           coalesce((SELECT sum(task.pool_slots) FROM task
                     WHERE task.pool = pool.name AND task.state IN ('queued', 'running', 'restarting')), 0)
           + CASE WHEN NOT pool.includes_deferred THEN 0 ELSE
               coalesce((SELECT sum(task.pool_slots) FROM task
                         WHERE task.pool = pool.name AND task.state = 'deferred' AND task.pool_slots > 0), 0) END,
           pool.includes_deferred
    FROM pool ORDER BY pool.name
    """
)
ACTIVE_TASKS = Sql(
    """
    SELECT count(*) FROM task JOIN attempt ON attempt.id = task.attempt_id
    WHERE (task.state IN ('queued', 'running', 'restarting')
           OR (:key <> '' AND task.state = 'deferred' AND task.map_index >= -1))
      AND (:attempt_id = 0 OR attempt.id = :attempt_id) AND (:workflow_id = 0 OR attempt.workflow_id = :workflow_id)
      AND (:key = '' OR task.key = :key)
    """
)


class WorkflowRow(NamedTuple):
    """A workflow as lists show it."""

    id: int
    project: str
    name: str
    file: str
    is_paused: bool
    is_gone: bool
    next_run_at: int | None
    last_run_id: int | None


class RunRow(NamedTuple):
    """A run with its newest attempt."""

    id: int
    workflow_id: int
    workflow: str
    key: str
    type: str
    state: str
    reason: str | None
    logical_at: int | None
    run_after: int
    params: str
    created_at: int
    started_at: int | None
    ended_at: int | None
    attempt_id: int
    attempt_number: int
    is_cancel_requested: bool
    max_active_runs: int | None
    max_active_tasks: int | None
    max_active_tasks_scope: str
    is_paused: bool
    project: str
    note: str | None = None
    backfill_id: int | None = None
    partition_key: str | None = None
    partition_at: int | None = None

    @property
    def is_active(self) -> bool:
        return self.state in ("queued", "running")


class RunChoice(NamedTuple):
    """Which runs to show. Zero and "" stand for all."""

    workflow_id: int = 0
    state: str = ""
    type: str = ""
    backfill_id: int = 0
    since: int | None = None
    until: int | None = None
    """Between which logical times, both included."""
    partition_key: str = ""


_WITH_ERROR = ("failed", "up_for_retry", "planned", "canceled", "upstream_failed", "removed")
"""States of a task that come after the end of a try. In others its row may have the error of the try before."""


class TaskRow(NamedTuple):
    """A task of an attempt."""

    id: int
    key: str
    map_index: int
    kind: str
    operator: str
    state: str
    try_number: int
    max_tries: int
    parent_id: int | None
    origin_id: int
    children: int
    children_open: int
    trigger_rule: str
    queue: str
    pool: str
    pool_slots: int
    due_at: int | None
    scheduled_at: int | None
    started_at: int | None
    ended_at: int | None
    error_json: str | None
    agent_id: int | None
    agent: str | None
    fence: int

    @property
    def name(self) -> str:
        """The key as people see it, with the index of a mapped instance."""
        return self.key if self.map_index < 0 else f"{self.key}[{self.map_index}]"

    @property
    def begun_tries(self) -> int:
        """How many of its tries have begun: one is counted before an agent takes it."""
        return self.try_number - (self.state in ("scheduled", "queued") and self.started_at is None)

    @property
    def is_listed(self) -> bool:
        """Whether people count it as a task: not the nameless root, nor a mapped task that its instances stand for."""
        return self.key != "" and not (self.kind == "mapped" and self.children > 0)

    @property
    def error(self) -> TaskError | None:
        """Why it failed, or what in it did; None while another try is to come or under way."""
        if self.error_json is None or self.state not in _WITH_ERROR:
            return None
        return msgspec.json.decode(self.error_json, type=TaskError)


class TryRow(NamedTuple):
    """One execution of a task that has ended."""

    try_number: int
    fence: int
    state: str
    started_at: int | None
    ended_at: int
    error_json: str | None
    log: str | None
    """Path below the logs folder."""


class EventRow(NamedTuple):
    """One change of a task (or, without a task, of the attempt)."""

    id: int
    task_id: int | None
    before: str | None
    after: str
    try_number: int
    at: int
    reason: str | None


class RunChange(NamedTuple):
    """A run that started or ended."""

    event_id: int
    run_id: int
    workflow: str
    state: str
    reason: str | None
    attempt_id: int


class SourceErrorRow(NamedTuple):
    """A file that could not be loaded."""

    id: int
    project: str
    root: str
    file: str
    line: int | None
    message: str
    hint: str | None
    detail: str | None
    at: int


class AgentRow(NamedTuple):
    """A live agent or scheduler."""

    id: int
    kind: str
    name: str
    slots: int
    queues: tuple[str, ...]
    renewed_at: int
    lease_until: int
    running: int
    stopping_at: int | None
    """Since when it takes no more tasks."""


class SilentAgent(NamedTuple):
    """An agent whose lease has run out."""

    name: str
    renewed_at: int


class PoolRow(NamedTuple):
    """A pool and how much of it is taken. Slots below zero: without limit."""

    name: str
    slots: int
    used: int
    includes_deferred: bool
    """Whether tasks that wait for a trigger take slots."""


def list_workflows(
    tx: Transaction, after: int = 0, limit: int = PAGE, project_id: int | None = None
) -> list[WorkflowRow]:
    """Workflows that files define now, of all projects or of one, by id, beginning after one."""
    parameters = {"after": after, "limit": limit}
    if project_id is None:
        return [_workflow(row) for row in tx.run(WORKFLOWS, parameters)]
    return [_workflow(row) for row in tx.run(WORKFLOWS_OF_PROJECT, {**parameters, "project_id": project_id})]


def workflows_named(tx: Transaction, name: str) -> list[WorkflowRow]:
    """Workflows of all projects with this name, those that still exist first."""
    return [_workflow(row) for row in tx.run(WORKFLOWS_BY_NAME, {"name": name})]


def workflow_of_project(tx: Transaction, project_id: int, name: str) -> WorkflowRow | None:
    """The workflow of a project that has or had this name."""
    rows = tx.run(WORKFLOW_OF_PROJECT, {"project_id": project_id, "name": name})
    return _workflow(rows[0]) if rows else None


def workflow_names(tx: Transaction) -> list[str]:
    return [row[0] for row in tx.run(WORKFLOW_NAMES)]


def current_version_of(tx: Transaction, workflow_id: int) -> int:
    """The newest version of a workflow that is in the store."""
    ((version_id,),) = tx.run(DEFINITION, {"id": workflow_id})
    return int(version_id)


def version_of_attempt(tx: Transaction, attempt_id: int) -> int:
    """The version of its workflow that an attempt runs."""
    ((version_id,),) = tx.run(VERSION_OF_ATTEMPT, {"id": attempt_id})
    return int(version_id)


def list_runs(
    tx: Transaction, workflow_id: int | None = None, before: int | None = None, limit: int = PAGE
) -> list[RunRow]:
    """Runs, newest first, beginning before one."""
    parameters = {"before": before or _ANY_ID, "limit": limit}
    if workflow_id is None:
        return [_run(row) for row in tx.run(RUNS, parameters)]
    return [_run(row) for row in tx.run(RUNS_OF_WORKFLOW, {**parameters, "workflow_id": workflow_id})]


def list_runs_of_project(
    tx: Transaction, project_id: int, before: int | None = None, limit: int = PAGE
) -> list[RunRow]:
    """Runs of a project's workflows, newest first, beginning before one."""
    parameters = {"project_id": project_id, "before": before or _ANY_ID, "limit": limit}
    return [_run(row) for row in tx.run(RUNS_OF_PROJECT, parameters)]


def choose_runs(tx: Transaction, choice: RunChoice, before: int | None = None, limit: int = PAGE) -> list[RunRow]:
    """Those runs that somebody wants to see, newest first, beginning before one."""
    parameters = {**choice._asdict(), "before": before or _ANY_ID, "limit": limit}
    statement = CHOSEN_RUNS_OF_WORKFLOW if choice.workflow_id else CHOSEN_RUNS
    return [_run(row) for row in tx.run(statement, parameters)]


def running_runs(tx: Transaction, workflow_id: int, limit: int = PAGE, backfill_id: int | None = None) -> list[RunRow]:
    """Runs that are going on and share a limit, oldest first: those of a backfill, or the workflow's others."""
    parameters = {"workflow_id": workflow_id, "backfill_id": backfill_id or 0, "limit": limit}
    return [_run(row) for row in tx.run(ACTIVE_RUNS, parameters)]


def runs_around(tx: Transaction, run: RunRow, *, past: bool, future: bool) -> list[RunRow]:
    """Other runs of the same workflow that have started, before or after one by logical time."""
    if run.logical_at is None or not (past or future):
        return []
    since, until = 0 if past else run.logical_at + 1, _ANY_ID if future else run.logical_at - 1
    parameters = {"workflow_id": run.workflow_id, "id": run.id, "since": since, "until": until}
    return [_run(row) for row in tx.run(RUNS_AROUND, parameters)]


def get_run(tx: Transaction, run_id: int) -> RunRow | None:
    rows = tx.run(RUN, {"id": run_id})
    return _run(rows[0]) if rows else None


def list_tasks(tx: Transaction, attempt_id: int, after: int = 0, limit: int = _ANY_ID) -> list[TaskRow]:
    """The live tasks of an attempt in the order of the file, beginning after one."""
    return [TaskRow(*row) for row in tx.run(TASKS, {"attempt_id": attempt_id, "after": after, "limit": limit})]


def unfinished_tasks(tx: Transaction, attempt_id: int) -> list[TaskRow]:
    return [TaskRow(*row) for row in tx.run(UNFINISHED_TASKS, {"attempt_id": attempt_id})]


def failed_tasks(tx: Transaction, attempt_id: int) -> list[TaskRow]:
    return [TaskRow(*row) for row in tx.run(FAILED_TASKS, {"attempt_id": attempt_id})]


def tasks_with_key(tx: Transaction, attempt_id: int, key: str) -> list[TaskRow]:
    """A task and, if it is mapped, its instances."""
    return [TaskRow(*row) for row in tx.run(TASKS_BY_KEY, {"attempt_id": attempt_id, "key": key})]


def get_tasks(tx: Transaction, ids: Sequence[int]) -> list[TaskRow]:
    """Tasks of any attempts."""
    return [TaskRow(*row) for row in tx.run(TASKS_BY_ID, {"ids": list(ids)})]


def task_keys(tx: Transaction, attempt_id: int) -> list[str]:
    return [row[0] for row in tx.run(TASK_KEYS, {"attempt_id": attempt_id})]


def upstream_tasks(tx: Transaction, task_id: int) -> list[TaskRow]:
    """What a task waits for directly; a mapped task stands for its instances."""
    return [TaskRow(*row) for row in tx.run(UPSTREAM, {"id": task_id})]


def list_edges(tx: Transaction, attempt_id: int) -> list[tuple[int, int]]:
    """(upstream id, downstream id) of an attempt's live tasks."""
    return [(row[0], row[1]) for row in tx.run(EDGES, {"attempt_id": attempt_id})]


def list_tries(tx: Transaction, task_id: int) -> list[TryRow]:
    """The executions of a task that have ended, oldest first."""
    return [TryRow(*row) for row in tx.run(TRIES, {"task_id": task_id})]


def list_events(tx: Transaction, attempt_id: int, after: int = 0, limit: int = 1000) -> list[EventRow]:
    """What happened in an attempt, oldest first, beginning after one event."""
    return [EventRow(*row) for row in tx.run(EVENTS, {"attempt_id": attempt_id, "after": after, "limit": limit})]


def last_reason(tx: Transaction, attempt_id: int, task_id: int) -> str | None:
    """Why a task got the state that it has, where the engine or somebody gave a reason."""
    rows = tx.run(LAST_REASON, {"attempt_id": attempt_id, "task_id": task_id})
    return rows[0][0] if rows else None


def run_changes(tx: Transaction, after: int) -> list[RunChange]:
    """Runs that started or ended after an event, in that order."""
    return [RunChange(*row) for row in tx.run(RUN_CHANGES, {"after": after})]


def last_event_id(tx: Transaction) -> int:
    ((event_id,),) = tx.run(LAST_EVENT)
    return int(event_id)


def list_source_errors(tx: Transaction, after: int = 0, limit: int = PAGE) -> list[SourceErrorRow]:
    """Files that could not be loaded."""
    return [SourceErrorRow(*row) for row in tx.run(SOURCE_ERRORS, {"after": after, "limit": limit})]


def live_agents(tx: Transaction, now: int) -> list[AgentRow]:
    """Agents and schedulers whose lease has not run out."""
    rows = tx.run(LIVE_AGENTS, {"now": now})
    return [AgentRow(*row)._replace(queues=tuple(msgspec.json.decode(row[4]))) for row in rows]


def silent_agents(tx: Transaction, attempt_id: int, now: int) -> dict[int, SilentAgent]:
    """Agents by id that hold tasks of an attempt and whose lease has run out."""
    rows = tx.run(SILENT_AGENTS, {"attempt_id": attempt_id, "now": now})
    return {agent_id: SilentAgent(name, renewed_at) for agent_id, name, renewed_at in rows}


def list_pools(tx: Transaction) -> list[PoolRow]:
    return [PoolRow(name, slots, int(used), bool(deferred)) for name, slots, used, deferred in tx.run(POOLS)]


def count_active_tasks(tx: Transaction, *, attempt_id: int = 0, workflow_id: int = 0, key: str = "") -> int:
    """How many tasks are held by agents, of one attempt, one workflow or one key; zero and "" stand for all."""
    parameters = {"attempt_id": attempt_id, "workflow_id": workflow_id, "key": key}
    ((count,),) = tx.run(ACTIVE_TASKS, parameters)
    return int(count)


def _workflow(row: Sequence[Any]) -> WorkflowRow:
    return WorkflowRow(*row)._replace(is_paused=bool(row[4]), is_gone=bool(row[5]))


def _run(row: Sequence[Any]) -> RunRow:
    return RunRow(*row)._replace(is_cancel_requested=bool(row[15]), is_paused=bool(row[19]))
