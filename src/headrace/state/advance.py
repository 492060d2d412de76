"""What follows from what: opening, growing, closing, retrying, skipping, cancelling.

`Advance` applies one or more outcomes to tasks and then settles: it follows every consequence until nothing more can be
decided without new information. It does no I/O itself: it reads and writes through a `Graph`, which the store
implements on a transaction and a test on a dictionary, so the same decisions run everywhere.

The work is proportional to what changed: a task that ends touches its direct downstream tasks and its parent.
"""

from __future__ import annotations

import copy
from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple, Protocol

import msgspec

from headrace.definition import NOOP, Node
from headrace.handoff import TaskError, TaskResult
from headrace.state.expansion import MapSource, instance_count, source_keys
from headrace.state.growth import Edge, grow_tasks
from headrace.state.retry import has_try_left, retry_delay_seconds
from headrace.state.rules import VERDICT_STATE, Tally, Verdict, decide
from headrace.state.task import (
    FAILURES,
    FINISHED,
    HELD,
    TIMED,
    Actor,
    Attempt,
    Event,
    State,
    Task,
    check_move,
)

_json = msgspec.json.Encoder()


class Link(NamedTuple):
    """An edge with the task at its other end."""

    near_id: int
    far: Task
    is_setup: bool


class Graph(Protocol):
    """The tasks around a change. Objects are shared: asking twice gives the same task."""

    @property
    def now(self) -> int:
        """Microseconds since 1970."""
        ...

    def attempt(self, attempt_id: int) -> Attempt: ...

    def node(self, task: Task) -> Node:
        """What the task's definition says."""
        ...

    def tasks(self, ids: Iterable[int]) -> list[Task]: ...

    def downstream(self, ids: Collection[int]) -> list[Link]:
        """Live tasks that wait for these."""
        ...

    def upstream(self, ids: Collection[int]) -> list[Link]:
        """Live tasks that these wait for; instances are not listed, only the mapped task that stands for them."""
        ...

    def children(self, ids: Collection[int]) -> list[Task]:
        """Live children."""
        ...

    def by_key(self, attempt_id: int, keys: Collection[str]) -> list[Task]:
        """Live tasks with these keys, without instances."""
        ...

    def unfinished(self, attempt_id: int) -> list[Task]: ...

    def map_sources(self, attempt_id: int, keys: Collection[str]) -> dict[str, MapSource]: ...

    def new_ids(self, count: int) -> Sequence[int]: ...

    def add(self, tasks: Sequence[Task], edges: Sequence[Edge]) -> None: ...

    def touch(self, task: Task) -> None:
        """Remember that this task changed."""
        ...

    def record(self, event: Event) -> None: ...


class Advance:
    """Apply outcomes, then `settle()`. One instance serves one transaction."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._finished: list[Task] = []
        self._touched: dict[int, Task] = {}
        self._opened: list[Task] = []
        self._closable: dict[int, Task] = {}
        self.scheduled: list[Task] = []
        """What became claimable, for whoever has free slots."""
        self.ended: list[Attempt] = []
        """The attempts that ended."""

    # ---- outcomes ----------------------------------------------------------------------------------------------

    def start(self, attempt: Attempt, root: Task, resumed: Iterable[Task] = ()) -> None:
        """Open the root of a new attempt. `resumed` tasks were inserted as ended and count as such."""
        attempt.state, attempt.started_at, attempt.is_changed = "running", self._graph.now, True
        self._graph.record(Event(attempt.id, None, "queued", "running", Actor.ADVANCE, 0, self._graph.now))
        self._open(root)
        self._finished.extend(resumed)

    def complete(self, task: Task, result: TaskResult) -> None:
        """A try ended and its agent still held it."""
        attempt = self._graph.attempt(task.attempt_id)
        if task.state is State.RESTARTING:
            self._restart(task, Actor.AGENT)
        elif attempt.is_cancel_requested and result.outcome != "again":
            self._finish(task, State.CANCELED, Actor.AGENT)
        elif result.outcome == "success":
            self._succeed(task, result)
        elif result.outcome == "failed":
            self.fail(task, result.error, Actor.AGENT, result.is_retryable, result.retry_after_seconds)
        elif result.outcome == "skipped":
            self._finish(task, State.SKIPPED, Actor.AGENT)
        elif result.outcome == "again":
            self._call_again(task, result)
        else:
            self.hand_back(task, Actor.AGENT)

    def fail(
        self,
        task: Task,
        error: TaskError | None,
        actor: Actor,
        is_retryable: bool = True,
        retry_after_seconds: float | None = None,
    ) -> None:
        """A try (or a group) failed: try again, run the failure's handlers, or end as failed."""
        attempt = self._graph.attempt(task.attempt_id)
        node = self._graph.node(task)
        if error is not None:
            task.error = _json.encode(error).decode()
        if task.state is State.RESTARTING:
            self._restart(task, actor)
        elif attempt.is_cancel_requested:
            self._finish(task, State.CANCELED, actor)
        elif is_retryable and has_try_left(task.try_number, task.max_tries):
            self._retry_later(task, node, actor, retry_after_seconds)
        elif node.on_failure and not task.is_failing:
            self._run_handlers(task, node, actor)
        else:
            self._finish(task, State.FAILED, actor)

    def hand_back(self, task: Task, actor: Actor) -> None:
        """Its agent will not run it; whoever is next takes it, in the same try."""
        if task.state is State.RESTARTING:
            self._restart(task, actor)
        elif self._graph.attempt(task.attempt_id).is_cancel_requested:
            self._finish(task, State.CANCELED, actor)
        else:
            task.agent_id, task.due_at, task.started_at = None, None, None
            self._schedule(task, actor, is_new_try=False)

    def wake(self, task: Task) -> None:
        """Its due time has come."""
        if task.state not in TIMED:
            return
        if self._graph.attempt(task.attempt_id).is_cancel_requested:
            self._finish(task, State.CANCELED, Actor.TIMER)
        elif task.state is not State.UP_FOR_RETRY:
            self._schedule(task, Actor.TIMER, is_new_try=False)
        elif task.kind == "group":
            self._regenerate(task)
            task.try_number += 1
            self._move(task, State.PLANNED, Actor.TIMER)
            self._open_children(task)
        else:
            self._drop_children(task)
            self._schedule(task, Actor.TIMER, is_new_try=True)

    def cancel(self, attempt: Attempt) -> None:
        """Stop as soon as possible: what runs is stopped by its agent, everything else ends now."""
        attempt.is_cancel_requested, attempt.is_changed = True, True
        for task in self._graph.unfinished(attempt.id):
            if task.state is State.PLANNED:
                self._closable[task.id] = task
            elif task.state not in HELD and task.state not in FINISHED:
                self._finish(task, State.CANCELED, Actor.USER)

    def time_out(self, attempt: Attempt, unfinished_become: State) -> None:
        """The run took too long: it fails, and whatever is not finished ends with it."""
        attempt.reason = "timed_out"
        self._end_early(attempt, unfinished_become, State.FAILED)

    def fail_deadlocked(self, attempt: Attempt) -> None:
        """Nothing can run any more and yet something is left: the run fails and the tasks keep their states."""
        attempt.reason = "deadlocked"
        (root,) = self._graph.tasks([attempt.root_id or 0])
        self._finish(root, State.FAILED, Actor.TIMER, "no task can run any more")

    def clear(self, tasks: Sequence[Task]) -> None:
        """Give tasks of the same attempt a new series of tries."""
        for task in tasks:
            self._clear(task)
        self._reopen_ancestors(tasks)
        self._recount(tasks)
        self._touched.update((task.id, task) for task in tasks)

    def expire(self, task: Task) -> None:
        """A running try is over its time limit and its agent did not end it."""
        seconds = f"{task.timeout_seconds:g}" if task.timeout_seconds is not None else "?"
        self.fail(task, TaskError(type="TaskTimeout", message=f"took longer than {seconds} s"), Actor.TIMER)

    # ---- settling ----------------------------------------------------------------------------------------------

    def settle(self) -> None:
        """Follow every consequence of what was applied."""
        while self._finished or self._touched or self._opened or self._closable:
            self._credit_downstream()
            self._consider_children()
            self._consider_touched()
            self._close_parents()

    def _credit_downstream(self) -> None:
        finished, self._finished = self._finished, []
        crediting = {task.origin_id for task in finished if not task.is_expanded}
        links: dict[int, list[Link]] = {}
        for link in self._graph.downstream(crediting) if crediting else ():
            links.setdefault(link.near_id, []).append(link)
        parents = {p.id: p for p in self._graph.tasks({t.parent_id for t in finished if t.parent_id is not None})}
        for task in finished:
            if not task.is_expanded:
                for link in links.get(task.origin_id, ()):
                    self._credit(link.far, task.state, link.is_setup)
            if task.parent_id is None:
                self._end_attempt(task)
            else:
                self._credit_parent(parents[task.parent_id], task)

    def _credit(self, task: Task, state: State, is_setup: bool) -> None:
        if state is State.SUCCESS:
            task.succeeded += 1
            task.setups_succeeded += is_setup
        elif state is State.SKIPPED:
            task.skipped += 1
            task.setups_skipped += is_setup
        elif state is State.UPSTREAM_FAILED:
            task.upstream_failed += 1
        elif state is State.REMOVED:
            task.removed += 1
        else:
            task.failed += 1
        self._graph.touch(task)
        self._touched[task.id] = task

    def _credit_parent(self, parent: Task, child: Task) -> None:
        parent.children_open -= 1
        if child.state in FAILURES and child.decides:
            parent.children_failed += 1
            parent.error = child.error or parent.error
        elif child.state is State.SKIPPED:
            parent.children_skipped += 1
        self._graph.touch(parent)
        if parent.children_open == 0:
            self._closable[parent.id] = parent

    def _consider_children(self) -> None:
        opened, self._opened = self._opened, []
        if opened:
            self._touched.update((child.id, child) for child in self._graph.children({task.id for task in opened}))

    def _consider_touched(self) -> None:
        touched, self._touched = self._touched, {}
        waiting = [task for task in touched.values() if task.state is State.NONE and task.parent_id is not None]
        parents = {p.id: p for p in self._graph.tasks({task.parent_id or 0 for task in waiting})}
        for task in waiting:
            if parents[task.parent_id or 0].state is State.PLANNED:
                self._consider(task)

    def _consider(self, task: Task) -> None:
        verdict = decide(task.trigger_rule, tally_of(task))
        if verdict is Verdict.RUN:
            if self._graph.attempt(task.attempt_id).is_cancel_requested:
                self._finish(task, State.CANCELED, Actor.ADVANCE)
            else:
                self._open(task)
        elif verdict is not Verdict.WAIT:
            self._finish(task, VERDICT_STATE[verdict], Actor.ADVANCE)

    def _close_parents(self) -> None:
        closable, self._closable = self._closable, {}
        for task in closable.values():
            if task.state is State.PLANNED and task.children_open == 0:
                self._close(task)

    def _close(self, task: Task) -> None:
        if self._graph.attempt(task.attempt_id).is_cancel_requested:
            self._finish(task, State.CANCELED, Actor.ADVANCE)
        elif task.is_failing:
            self._finish(task, State.FAILED, Actor.ADVANCE)
        elif task.children_failed:
            self.fail(task, None, Actor.ADVANCE)
        elif task.kind == "mapped" and task.children_skipped == task.children:
            self._finish(task, State.SKIPPED, Actor.ADVANCE)
        else:
            self._finish(task, State.SUCCESS, Actor.ADVANCE)

    # ---- opening -----------------------------------------------------------------------------------------------

    def _open(self, task: Task) -> None:
        if task.kind == "group":
            task.try_number += 1
            task.started_at = self._graph.now
            self._move(task, State.PLANNED, Actor.ADVANCE)
            self._open_children(task)
        elif task.kind == "mapped" and not task.is_instance:
            self._expand(task)
        elif task.operator == NOOP and not task.is_instance:
            task.try_number += 1
            task.started_at = self._graph.now
            self._finish(task, State.SUCCESS, Actor.ADVANCE)
        else:
            self._schedule(task, Actor.ADVANCE, is_new_try=True)

    def _open_children(self, task: Task) -> None:
        if task.children_open == 0:
            self._closable[task.id] = task
        else:
            self._opened.append(task)

    def _schedule(self, task: Task, actor: Actor, *, is_new_try: bool) -> None:
        if is_new_try:
            # Counted before an agent takes it, so a crash while starting still uses the try.
            task.try_number += 1
            task.poll_state = None
        task.due_at = None
        task.scheduled_at = self._graph.now
        self._move(task, State.SCHEDULED, actor)
        self.scheduled.append(task)

    def _expand(self, task: Task) -> None:
        length = self._graph.node(task).expand
        assert length is not None, "checked when the workflow was compiled"
        keys = set(source_keys(length))
        count = instance_count(length, self._graph.map_sources(task.attempt_id, keys) if keys else {})
        if count == 0:
            self._finish(task, State.SKIPPED, Actor.ADVANCE, "there is nothing to map over")
        elif isinstance(count, State):
            self._finish(task, count, Actor.ADVANCE, "the result to map over is missing")
        else:
            task.try_number += 1
            task.started_at = self._graph.now
            self._set_instances(task, count)
            self._move(task, State.PLANNED, Actor.ADVANCE)

    def _set_instances(self, task: Task, count: int) -> None:
        """Make it have exactly `count` live instances, all scheduled."""
        existing = self._graph.children([task.id]) if task.children else []
        ids = self._graph.new_ids(max(0, count - len(existing)))
        template = self._instance_template(task)
        added = [_instance(template, task_id, index) for index, task_id in enumerate(ids, len(existing))]
        self._graph.add(added, ())
        for link in self._graph.downstream([task.id]):
            link.far.expected += count - max(1, task.children)
            self._graph.touch(link.far)
        task.children, task.children_open = count, count
        task.children_failed = task.children_skipped = 0
        for instance in sorted([*existing, *added], key=lambda one: one.map_index):
            if instance.map_index >= count:
                self._move(instance, State.REMOVED, Actor.ADVANCE)
            else:
                # An instance without code to run still goes through the queue: one transaction never has to
                # finish a hundred thousand tasks.
                self._schedule(instance, Actor.ADVANCE, is_new_try=True)

    def _instance_template(self, task: Task) -> Task:
        template = copy.copy(task)
        template.parent_id, template.origin_id, template.kind = task.id, task.id, "task"
        template.decides, template.max_tries = True, self._graph.node(task).retry.limit
        template.state, template.version, template.try_number = State.NONE, 0, 0
        template.children = template.children_open = template.expected = template.setups = 0
        template.succeeded = template.skipped = template.failed = template.upstream_failed = template.removed = 0
        template.setups_succeeded = template.setups_skipped = 0
        template.started_at = template.scheduled_at = None
        return template

    # ---- ending ------------------------------------------------------------------------------------------------

    def _succeed(self, task: Task, result: TaskResult) -> None:
        task.error = None
        if result.growth:
            self._drop_children(task)
            self._grow(task, result.growth, grown_by=task.id)
            self._move(task, State.PLANNED, Actor.AGENT)
            self._open_children(task)
            return
        self._finish(task, State.SUCCESS, Actor.AGENT)
        if result.followed is not None:
            self._follow(task, result.followed)
        elif result.skipped:
            task.decision = _json.encode({"skipped": result.skipped}).decode()
            for other in self._graph.by_key(task.attempt_id, result.skipped):
                self._skip(other)

    def _follow(self, task: Task, followed: Sequence[str]) -> None:
        """A branch: its direct downstream tasks that were not chosen are skipped at once."""
        task.decision = _json.encode({"followed": followed}).decode()
        if task.is_instance:
            return  # each instance of a mapped branch decides for its own index only
        for link in self._graph.downstream([task.origin_id]):
            if link.far.key not in followed:
                self._skip(link.far)

    def _skip(self, task: Task) -> None:
        if task.state in (State.NONE, State.SCHEDULED):
            self._finish(task, State.SKIPPED, Actor.ADVANCE, "a branch was not taken")

    def _call_again(self, task: Task, result: TaskResult) -> None:
        task.poll_state = _json.encode(result.poll_state).decode() if result.poll_state else None
        task.agent_id = None
        task.due_at = self._graph.now + round(result.again_after_seconds * 1_000_000)
        self._move(task, State.UP_FOR_RESCHEDULE, Actor.AGENT)
        self._wake_if_due(task)

    def _retry_later(self, task: Task, node: Node, actor: Actor, after_seconds: float | None) -> None:
        seed = f"{self._graph.attempt(task.attempt_id).run_id}#{task.name}"
        seconds = retry_delay_seconds(node.retry, task.try_number, seed) if after_seconds is None else after_seconds
        task.agent_id = None
        task.due_at = self._graph.now + round(seconds * 1_000_000)
        self._move(task, State.UP_FOR_RETRY, actor)
        self._wake_if_due(task)

    def _wake_if_due(self, task: Task) -> None:
        if task.due_at is not None and task.due_at <= self._graph.now:
            self.wake(task)

    def _run_handlers(self, task: Task, node: Node, actor: Actor) -> None:
        """Its failure is final, but what the user wrote for this case runs first."""
        task.is_failing = True
        error = msgspec.json.decode(task.error) if task.error else {}
        told = {"error": {"message": error.get("message", ""), "stacktrace": error.get("traceback", "")}}
        handlers = [
            msgspec.structs.replace(handler, export={**told, **handler.export}) if handler.parent is None else handler
            for handler in node.on_failure
        ]
        self._grow(task, handlers, grown_by=task.id)
        if task.state is not State.PLANNED:
            task.agent_id = None
            self._move(task, State.PLANNED, actor)
        self._open_children(task)
        self._graph.touch(task)

    def _finish(self, task: Task, state: State, actor: Actor, reason: str | None = None) -> None:
        had_open_children = task.children_open > 0 and task.state is State.NONE
        task.ended_at = self._graph.now
        task.agent_id, task.due_at = None, None
        self._move(task, state, actor, reason)
        self._finished.append(task)
        if had_open_children:
            self._abandon(task, state, actor)

    def _abandon(self, task: Task, state: State, actor: Actor) -> None:
        """A group that never opens takes everything below it along."""
        below = self._graph.children([task.id])
        while below:
            for child in below:
                if child.state is State.NONE:
                    child.ended_at = self._graph.now
                    self._move(child, state, actor)
            below = self._graph.children([child.id for child in below if child.children])

    def _end_attempt(self, root: Task) -> None:
        attempt = self._graph.attempt(root.attempt_id)
        before, attempt.state = attempt.state, str(root.state)
        attempt.ended_at, attempt.is_changed = self._graph.now, True
        now = self._graph.now
        self._graph.record(Event(attempt.id, None, before, attempt.state, Actor.ADVANCE, 0, now, attempt.reason))
        self.ended.append(attempt)

    def _end_early(self, attempt: Attempt, others_become: State, root_becomes: State) -> None:
        attempt.is_changed = True
        for task in self._graph.unfinished(attempt.id):
            if task.parent_id is not None:
                task.ended_at, task.agent_id, task.due_at = self._graph.now, None, None
                task.children_open = 0
                self._move(task, others_become, Actor.TIMER, attempt.reason)
        (root,) = self._graph.tasks([attempt.root_id or 0])
        root.children_open = 0
        self._finish(root, root_becomes, Actor.TIMER, attempt.reason)

    # ---- growing, clearing ---------------------------------------------------------------------------------------

    def _grow(self, task: Task, nodes: Sequence[Node], grown_by: int | None) -> None:
        attempt = self._graph.attempt(task.attempt_id)
        attempt.growth, attempt.is_changed = attempt.growth + 1, True
        ids = self._graph.new_ids(len(nodes))
        growth = grow_tasks(
            nodes, ids, attempt_id=task.attempt_id, under=task, generation=attempt.growth, grown_by=grown_by
        )
        self._graph.add(growth.tasks, growth.edges)
        self._graph.touch(task)

    def _regenerate(self, task: Task) -> None:
        """Replace everything below a group by its next generation."""
        # What was inserted together with the group is inserted again; what its tasks grew, they will grow again.
        nodes = [self._graph.node(below) for below in self._drop_children(task) if below.grown_by == task.grown_by]
        self._grow(task, nodes, grown_by=task.grown_by)

    def _drop_children(self, task: Task) -> list[Task]:
        """Supersede everything below a task and return it, in file order."""
        dropped: list[Task] = []
        below = self._graph.children([task.id]) if task.children else []
        while below:
            for child in below:
                child.is_superseded = True
                self._graph.touch(child)
            dropped += below
            below = self._graph.children([child.id for child in below if child.children])
        task.children = task.children_open = task.children_failed = task.children_skipped = 0
        task.is_failing = False
        return sorted(dropped, key=lambda one: one.id)

    def _restart(self, task: Task, actor: Actor) -> None:
        """Cleared while it ran: its process is gone, it begins anew."""
        self._reset(task)
        self._move(task, State.NONE, actor)
        self._touched[task.id] = task

    def _clear(self, task: Task) -> None:
        retries = 0 if task.kind == "mapped" and not task.is_instance else self._graph.node(task).retry.limit
        task.max_tries = task.try_number + retries
        if task.state in (State.RUNNING, State.QUEUED):
            self._move(task, State.RESTARTING, Actor.USER)
        elif task.state not in (State.NONE, State.RESTARTING):
            if task.kind == "group":
                self._regenerate(task)
            elif task.kind == "task":
                self._drop_children(task)
            self._reset(task)
            self._move(task, State.NONE, Actor.USER)

    def _reset(self, task: Task) -> None:
        task.agent_id = task.due_at = task.started_at = task.first_started_at = task.ended_at = None
        task.error = task.decision = task.poll_state = None
        task.is_failing = False

    def _reopen_ancestors(self, tasks: Sequence[Task]) -> None:
        level = {task.parent_id for task in tasks if task.parent_id is not None}
        while level:
            parents = self._graph.tasks(level)
            self._count_children(parents)
            for parent in parents:
                if parent.state in FINISHED:
                    parent.ended_at, parent.is_failing, parent.error = None, False, None
                    self._move(parent, State.PLANNED, Actor.USER)
                if parent.parent_id is None:
                    self._reopen_attempt(parent)
            level = {parent.parent_id for parent in parents if parent.parent_id is not None}

    def _reopen_attempt(self, root: Task) -> None:
        attempt = self._graph.attempt(root.attempt_id)
        if attempt.state != "running":
            before, attempt.state = attempt.state, "running"
            attempt.ended_at, attempt.reason, attempt.started_at = None, None, self._graph.now
            attempt.is_changed, attempt.is_cancel_requested = True, False
            self._graph.record(Event(attempt.id, None, before, "running", Actor.USER, 0, self._graph.now))

    def _count_children(self, parents: Sequence[Task]) -> None:
        for parent in parents:
            children = [child for child in self._graph.children([parent.id]) if child.state is not State.REMOVED]
            parent.children = len(children)
            parent.children_open = sum(child.state not in FINISHED for child in children)
            parent.children_failed = sum(child.state in FAILURES and child.decides for child in children)
            parent.children_skipped = sum(child.state is State.SKIPPED for child in children)
            self._graph.touch(parent)

    def _recount(self, cleared: Sequence[Task]) -> None:
        """Count anew what the cleared tasks, and those that wait for them, have seen of their upstream tasks."""
        waiting = {task.id: task for task in cleared if task.parent_id is not None and not task.is_instance}
        for link in self._graph.downstream({task.origin_id for task in cleared}):
            waiting[link.far.id] = link.far
        links: dict[int, list[Link]] = {}
        for link in self._graph.upstream(list(waiting)):
            links.setdefault(link.near_id, []).append(link)
        for task in waiting.values():
            self._recount_one(task, links.get(task.id, ()))

    def _recount_one(self, task: Task, links: Sequence[Link]) -> None:
        task.expected = task.succeeded = task.skipped = task.failed = task.upstream_failed = task.removed = 0
        task.setups = task.setups_succeeded = task.setups_skipped = 0
        remembered = False
        for link in links:
            ends = self._graph.children([link.far.id]) if link.far.is_expanded else [link.far]
            task.expected += len(ends)
            task.setups += link.is_setup
            for end in ends:
                if end.state in FINISHED:
                    self._credit(task, end.state, link.is_setup)
            remembered = remembered or _excludes(link.far, task)
        self._graph.touch(task)
        if remembered and task.state is State.NONE:
            self._finish(task, State.SKIPPED, Actor.ADVANCE, "a branch was not taken")

    def _move(self, task: Task, after: State, actor: Actor, reason: str | None = None) -> None:
        check_move(task, after, actor)
        event = Event(task.attempt_id, task.id, task.state, after, actor, task.try_number, self._graph.now, reason)
        task.state = after
        self._graph.touch(task)
        self._graph.record(event)


def _instance(template: Task, task_id: int, index: int) -> Task:
    instance = copy.copy(template)
    instance.id, instance.map_index = task_id, index
    return instance


def _excludes(branch: Task, task: Task) -> bool:
    """Whether a finished branching task remembers that this one is not to run."""
    if branch.decision is None or branch.state is not State.SUCCESS:
        return False
    decision = msgspec.json.decode(branch.decision)
    followed: list[str] | None = decision.get("followed")
    return task.key not in followed if followed is not None else task.key in decision.get("skipped", ())


def tally_of(task: Task) -> Tally:
    """What a task has seen of its upstream tasks."""
    return Tally(
        task.expected,
        task.succeeded,
        task.skipped,
        task.failed,
        task.upstream_failed,
        task.removed,
        task.setups,
        task.setups_succeeded,
        task.setups_skipped,
        task.map_index,
    )


def accepts(task: Task, fence: int) -> bool:
    """Whether a report about this claim may still change the task."""
    return task.fence == fence and task.state in HELD
