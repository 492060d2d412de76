"""Why one task is where it is."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

from headrace.actions.wording import are_stopping, error_line, instant, names, span, tries
from headrace.definition import Node, to_json
from headrace.logs import hidden
from headrace.state import FINE, FINISHED, INLINE_QUEUE, MARKED, NEVER, State
from headrace.store import (
    AgentRow,
    Definitions,
    PoolRow,
    QuestionRow,
    RunRow,
    SilentAgent,
    TaskRow,
    Transaction,
    Waiting,
    awaited_trigger,
    count_active_tasks,
    last_reason,
    list_pools,
    live_agents,
    open_question,
    past_of,
    silent_agents,
    upstream_tasks,
    version_of_attempt,
)

_NEEDS = {
    "all_success": "all of them to succeed",
    "all_failed": "all of them to fail",
    "all_done": "all of them to end",
    "all_done_min_one_success": "all of them to end and one to succeed",
    "all_skipped": "all of them to be skipped",
    "one_success": "one of them to succeed",
    "one_failed": "one of them to fail",
    "one_done": "one of them to end",
    "none_failed": "all of them to end and none to fail",
    "none_failed_min_one_success": "all of them to end, none to fail and one to succeed",
    "none_skipped": "all of them to end and none to be skipped",
    "always": "nothing",
    "all_done_setup_success": "all of them to end and a setup to succeed",
}


class Reason(NamedTuple):
    """One sentence, with what a program needs to know of it."""

    task: str | None
    """None: the run itself."""
    state: str
    kind: str
    sentence: str
    since: int | None = None
    """Microseconds since 1970, as in the store."""
    due_at: int | None = None
    hint: str | None = None


class Situation:
    """What the tasks of a run may be waiting for, read when it is first asked for."""

    def __init__(self, tx: Transaction, run: RunRow, now: int, tasks: Sequence[TaskRow]) -> None:
        self.tx = tx
        self.run = run
        self.now = now
        self.tasks = tasks
        self._by_id = {task.id: task for task in tasks}

    def parent_of(self, task: TaskRow) -> TaskRow | None:
        return self._by_id.get(task.parent_id or 0)

    @cached_property
    def agents(self) -> list[AgentRow]:
        """Also those that are stopping."""
        return [row for row in live_agents(self.tx, self.now) if row.kind == "agent"]

    @cached_property
    def silent(self) -> dict[int, SilentAgent]:
        return silent_agents(self.tx, self.run.attempt_id, self.now)

    @cached_property
    def has_scheduler(self) -> bool:
        return any(row.kind == "scheduler" for row in live_agents(self.tx, self.now))

    @cached_property
    def has_triggerer(self) -> bool:
        """Whether one takes triggers."""
        return any(row.kind == "triggerer" and row.stopping_at is None for row in live_agents(self.tx, self.now))

    @cached_property
    def pools(self) -> dict[str, PoolRow]:
        return {pool.name: pool for pool in list_pools(self.tx)}

    @cached_property
    def active(self) -> int:
        """How many tasks count against `max_active_tasks`."""
        if self.run.max_active_tasks_scope == "run":
            return count_active_tasks(self.tx, attempt_id=self.run.attempt_id)
        return count_active_tasks(self.tx, workflow_id=self.run.workflow_id)

    @cached_property
    def version_id(self) -> int:
        return version_of_attempt(self.tx, self.run.attempt_id)

    @cached_property
    def nodes(self) -> Mapping[str, Node]:
        """What the workflow says about its tasks, by key."""
        return self.tx.shared(Definitions).version(self.tx, self.version_id).nodes


def explain(situation: Situation, task: TaskRow) -> Reason:
    """The sentence for a task in any state."""
    if State(task.state) in FINISHED:
        return _finished(situation, task)
    return _BY_STATE[task.state](situation, task)


def placing(situation: Situation, task: TaskRow) -> list[Reason]:
    """What a task tells the executor that is to run it, if it tells anything."""
    node = situation.nodes.get(task.key)
    if node is None or not (node.executor or node.executor_options):
        return []
    told = f" with `executor_config` {to_json(hidden(node.executor_options)).decode()}" if node.executor_options else ""
    which = f"executor `{node.executor}`" if node.executor else "the executor of its agent"
    return [_reason(task, "executor", f"is to be run by {which}{told}")]


def _reason(
    task: TaskRow, kind: str, text: str, since: int | None = None, due_at: int | None = None, hint: str | None = None
) -> Reason:
    return Reason(task.name, task.state, kind, f"`{task.name}` {text}", since, due_at, hint)


def _none(situation: Situation, task: TaskRow) -> Reason:
    parent = situation.parent_of(task)
    if parent is not None and parent.state == "none":
        return _reason(task, "group", f"waits for its group `{parent.name}` to begin")
    since = parent.started_at if parent is not None else situation.run.started_at
    if task.trigger_rule == NEVER:
        return _reason(task, "dates", "is not for the time of this run, by its start_date or end_date", since)
    upstream = upstream_tasks(situation.tx, task.origin_id)
    undone = [one for one in upstream if State(one.state) not in FINISHED]
    if not undone:
        waiting = past_of(situation.tx, situation.run.attempt_id, situation.version_id, task.key)
        if waiting is not None:
            return _held_up(task, waiting, since)
        return _reason(task, "starting", "has nothing left to wait for: it is about to be scheduled", since)
    text = (
        f"waits since {instant(since)} for {names(undone)}:"
        f" its trigger rule `{task.trigger_rule}` needs {_NEEDS[task.trigger_rule]}"
    )
    return _reason(task, "upstream", text, since)


def _held_up(task: TaskRow, waiting: Waiting, since: int | None) -> Reason:
    before = waiting.before
    of = f"run {before.run_id} (logical time {before.logical_time:%Y-%m-%d %H:%M:%SZ})"
    text = f"waits since {instant(since)} for the run before it, {of}:"
    unfit = [state for state in before.states if state not in FINE]
    if not before.states:
        return _reason(task, "past", f"{text} that run does not have the task, but earlier ones do", since)
    if unfit:
        text += f" there the task is {unfit[0]}, and it must have succeeded or been skipped"
    else:
        unfit = [state for state in before.downstream if state not in FINE]
        text += f" there a task that follows it directly is {unfit[0]}, and it must have succeeded or been skipped"
    hint = f"`headrace clear {before.run_id} {task.key}`, or `headrace mark success {before.run_id} {task.key}`"
    return _reason(task, "past", text, since, hint=hint)


def held_back(situation: Situation, task: TaskRow) -> HeldBack | None:
    """What keeps a task that is ready from being taken; None: an agent is about to take it."""
    for check in (_paused, _pool, _active_tasks, _active_of_task, _no_agent, _slots):
        found = check(situation, task)
        if found is not None:
            return HeldBack(*found)
    return None


def _scheduled(situation: Situation, task: TaskRow) -> Reason:
    found = held_back(situation, task)
    if found is not None:
        text = f"waits since {instant(task.scheduled_at)}: {found.text}"
        return _reason(task, found.kind, text, task.scheduled_at, hint=found.hint)
    text = f"is ready since {instant(task.scheduled_at)}: an agent is about to take it"
    return _reason(task, "starting", text, task.scheduled_at)


class HeldBack(NamedTuple):
    """A limit, a pause or a missing agent."""

    kind: str
    text: str
    hint: str | None


_Found = tuple[str, str, str | None] | None


def _paused(situation: Situation, task: TaskRow) -> _Found:
    name = situation.run.workflow
    return ("paused", f"workflow `{name}` is paused", f"`headrace unpause {name}`") if situation.run.is_paused else None


def _pool(situation: Situation, task: TaskRow) -> _Found:
    pool = situation.pools.get(task.pool)
    if pool is None:
        return "no_pool", f"its pool `{task.pool}` does not exist", f"`headrace pools set {task.pool} SLOTS` creates it"
    if 0 <= pool.slots < task.pool_slots:
        needed = "1 slot" if task.pool_slots == 1 else f"{task.pool_slots} slots"
        text = f"it needs {needed} and pool `{pool.name}` has {pool.slots}"
        hint = f"`headrace pools set {pool.name} {task.pool_slots}` gives it as many, or lower the task's `pool_slots`"
        return "pool_too_small", text, hint
    if 0 <= pool.slots < pool.used + task.pool_slots:
        return "pool_full", f"pool `{pool.name}` is full, {pool.used} of {pool.slots} slots are taken", None
    return None


def _active_tasks(situation: Situation, task: TaskRow) -> _Found:
    limit = situation.run.max_active_tasks
    if limit is None or situation.active < limit:
        return None
    of = "the run" if situation.run.max_active_tasks_scope == "run" else f"workflow `{situation.run.workflow}`"
    active = "1 task" if situation.active == 1 else f"{situation.active} tasks"
    verb = "is" if situation.active == 1 else "are"
    return "max_active_tasks", f"max_active_tasks is {limit} and {active} of {of} {verb} active", None


def _active_of_task(situation: Situation, task: TaskRow) -> _Found:
    node, run = situation.nodes.get(task.key), situation.run
    per_workflow, per_run = (None, None) if node is None else (node.max_active_per_workflow, node.max_active_per_run)
    if per_run is not None:
        active = count_active_tasks(situation.tx, attempt_id=run.attempt_id, key=task.key)
        if active >= per_run:
            return "max_active_per_run", f"{active} instances of it are active in the run, which is its limit", None
    if per_workflow is not None:
        active = count_active_tasks(situation.tx, workflow_id=run.workflow_id, key=task.key)
        if active >= per_workflow:
            return "max_active_per_workflow", f"{active} of it are active over all runs, which is its limit", None
    return None


def _serving(situation: Situation, task: TaskRow) -> tuple[list[AgentRow], list[AgentRow]]:
    """The agents of the task's queue: those that take tasks, and those that are stopping and take none."""
    agents = [agent for agent in situation.agents if task.queue == INLINE_QUEUE or task.queue in agent.queues]
    taking = [agent for agent in agents if agent.stopping_at is None]
    return taking, [agent for agent in agents if agent.stopping_at is not None]


def _no_agent(situation: Situation, task: TaskRow) -> _Found:
    taking, stopping = _serving(situation, task)
    if taking:
        return None
    is_inline = task.queue == INLINE_QUEUE
    command = "headrace agent" if is_inline else f"headrace agent --queues {task.queue}"
    hint = f"start one with `{command}`{_or_all(situation)}"
    if stopping:
        text = "no agent takes tasks" if is_inline else f"no agent takes tasks of queue `{task.queue}`"
        return "no_agent", f"{text}: {are_stopping('agent', [agent.name for agent in stopping])}", hint
    text = "no agent is alive" if is_inline else f"no agent is alive that serves queue `{task.queue}`"
    return "no_agent", text, hint


def _or_all(situation: Situation) -> str:
    """The rest of a hint where nobody serves at all."""
    is_served = situation.agents or situation.has_scheduler
    return "" if is_served else ", or scheduler and agent in one with `headrace standalone`"


def _slots(situation: Situation, task: TaskRow) -> _Found:
    agents, _ = _serving(situation, task)
    slots, used = sum(agent.slots for agent in agents), sum(agent.running for agent in agents)
    if task.queue == INLINE_QUEUE or used < slots:
        return None
    whose = f"agent `{agents[0].name}`" if len(agents) == 1 else f"the {len(agents)} agents of queue `{task.queue}`"
    return "no_slot", f"all {slots} slots of {whose} are taken", None


def _abandoned(situation: Situation, task: TaskRow) -> Reason | None:
    """What is to be said of a task whose agent gives no sign of life."""
    agent = situation.silent.get(task.agent_id or 0)
    if agent is None:
        return None
    silent = span(agent.renewed_at, situation.now)
    text = (
        f"is {task.state} since {instant(task.started_at)}, but its agent `{agent.name}` is silent since {silent}:"
        " it will be rescued by a scheduler"
    )
    if situation.has_scheduler:
        return _reason(task, "silent_agent", text, agent.renewed_at)
    hint = "start one with `headrace standalone` or `headrace scheduler`"
    return _reason(task, "silent_agent", f"{text} (none is alive: start one)", agent.renewed_at, hint=hint)


def _queued(situation: Situation, task: TaskRow) -> Reason:
    abandoned = _abandoned(situation, task)
    if abandoned is not None:
        return abandoned
    text = f"was handed to agent `{task.agent}` and waits for its process"
    return _reason(task, "queued", text, task.scheduled_at)


def _running(situation: Situation, task: TaskRow) -> Reason:
    abandoned = _abandoned(situation, task)
    if abandoned is not None:
        return abandoned
    took = span(task.started_at, situation.now)
    text = f"runs on agent `{task.agent}` since {instant(task.started_at)} ({took}), {tries(task)}"
    return _reason(task, "running", text, task.started_at)


def _planned(situation: Situation, task: TaskRow) -> Reason:
    children = [one for one in situation.tasks if one.parent_id == task.id and State(one.state) not in FINISHED]
    text = f"is open since {instant(task.started_at)}: {task.children_open} of its {task.children} tasks are not done"
    if children:
        text += f", such as {names(children)}" if len(children) > 1 else f", namely {names(children)}"
    return _reason(task, "children", text, task.started_at)


def _timed(situation: Situation, task: TaskRow) -> Reason:
    is_due = task.due_at is None or task.due_at <= situation.now
    when = f"at {instant(task.due_at)}" + ("" if is_due else f" (in {span(situation.now, task.due_at)})")
    if task.state == "up_for_retry":
        total = max(task.try_number, task.max_tries) + 1
        text = f"failed ({error_line(task)}): try {task.try_number + 1} of {total} is due {when}"
    else:
        text = f"looks again {when}, {tries(task)}"
    if is_due and not situation.has_scheduler:
        return _reason(task, "no_scheduler", f"{text}, but no scheduler is alive", task.ended_at, task.due_at)
    return _reason(task, "timer", text, task.ended_at, task.due_at)


def _deferred(situation: Situation, task: TaskRow) -> Reason:
    awaited = awaited_trigger(situation.tx, task.id, situation.now)
    asked = None if awaited is not None else open_question(situation.tx, task.id)
    if asked is not None:
        return _asking(task, asked)
    if awaited is None:
        return _reason(task, "trigger", "has stopped waiting for its trigger a moment ago", task.started_at)
    limit = "" if task.due_at is None else f", until {instant(task.due_at)} at the latest"
    text = f"waits since {instant(awaited.since)} for trigger `{awaited.path}`{limit}"
    if awaited.triggerer is not None and awaited.stopping_at is None:
        return _reason(task, "trigger", f"{text}; triggerer `{awaited.triggerer}` runs it", awaited.since, task.due_at)
    stopping = "" if awaited.triggerer is None else are_stopping("triggerer", [awaited.triggerer])
    if stopping and situation.has_triggerer:
        text = f"{text}; {stopping}, and another one is to go on with it"
        return _reason(task, "trigger", text, awaited.since, task.due_at)
    text = f"{text}, but no triggerer runs it{stopping and f': {stopping}'}"
    return _reason(task, "no_triggerer", text, awaited.since, task.due_at, "`headrace triggerer` starts one")


def _asking(task: TaskRow, asked: QuestionRow) -> Reason:
    limit = "" if task.due_at is None else f", until {instant(task.due_at)} at the latest"
    subject = asked.question.subject.strip()
    text = f"waits since {instant(asked.asked_at)} for the answer of a person to `{subject}`{limit}"
    hint = f"`headrace answer {asked.run_id} {asked.task} OPTION` answers it"
    return _reason(task, "question", text, asked.asked_at, task.due_at, hint)


def _restarting(situation: Situation, task: TaskRow) -> Reason:
    return _reason(task, "restarting", f"was cleared; agent `{task.agent}` is stopping its process", task.started_at)


def _finished(situation: Situation, task: TaskRow) -> Reason:
    ended = f"at {instant(task.ended_at)}"
    if task.state == "success":
        took = span(task.started_at, task.ended_at)
        text = f"succeeded {ended}" + (f" after {took}, {tries(task)}" if took and task.try_number else "")
        text += _marked(situation, task)
    elif task.state == "failed":
        text = f"failed {ended} ({tries(task)}): {error_line(task)}"
    elif task.state in ("upstream_failed", "skipped"):
        text = f"was not run ({task.state}) {ended}{_marked(situation, task) or _because(situation, task)}"
    elif task.state == "canceled":
        text = f"was canceled {ended}: its run was asked to stop"
    else:
        text = "was removed: its mapping shrank, or it is no longer in the workflow"
    return _reason(task, "ended", text, task.ended_at)


def _marked(situation: Situation, task: TaskRow) -> str:
    is_marked = last_reason(situation.tx, situation.run.attempt_id, task.id) == MARKED
    return f": {MARKED}" if is_marked else ""


def _because(situation: Situation, task: TaskRow) -> str:
    causes = ("failed", "upstream_failed", "canceled") if task.state == "upstream_failed" else ("skipped",)
    found = [one for one in upstream_tasks(situation.tx, task.origin_id) if one.state in causes]
    return f": because of {names(found)}" if found else ""


_BY_STATE: dict[str, Callable[[Situation, TaskRow], Reason]] = {
    "none": _none,
    "scheduled": _scheduled,
    "queued": _queued,
    "running": _running,
    "planned": _planned,
    "deferred": _deferred,
    "up_for_reschedule": _timed,
    "up_for_retry": _timed,
    "restarting": _restarting,
}
