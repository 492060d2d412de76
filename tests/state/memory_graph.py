"""A `Graph` of dictionaries, and a small engine on it that a test drives one outcome at a time."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from recount import check

from headrace.definition import Deferral, Length, Node, Retry, Workflow, check_workflow, node_from_json
from headrace.handoff import Errand, Fired, TaskError, TaskResult
from headrace.state import (
    FINISHED,
    HELD,
    TIMED,
    Actor,
    Advance,
    Attempt,
    Edge,
    Event,
    Link,
    MapSource,
    State,
    Task,
    accepts,
    check_move,
    grow_tasks,
    source_of,
)

SECOND = 1_000_000


class MemoryGraph:
    """Everything about one attempt, in dictionaries."""

    def __init__(self, workflow: Workflow) -> None:
        self.now = 1_000 * SECOND
        self._workflow = workflow
        self.nodes = {node.key: node for node in workflow.nodes}
        self.all: dict[int, Task] = {}
        self.edges: list[Edge] = []
        self.events: list[Event] = []
        self.errands: list[tuple[str, Errand]] = []
        self.held_up: set[str] = set()
        self.lengths: dict[int, int] = {}
        self.triggers: list[tuple[str, Deferral]] = []
        self.the_attempt = Attempt(1, 7, 1, 1, "queued", False, 0, None, None, None, None, None)
        self._next_id = 1
        self._by_parent: dict[int | None, list[Task]] = {}
        self._by_upstream: dict[int, list[Edge]] = {}
        self._by_downstream: dict[int, list[Edge]] = {}

    def attempt(self, attempt_id: int) -> Attempt:
        assert attempt_id == self.the_attempt.id
        return self.the_attempt

    def node(self, task: Task) -> Node:
        return self.nodes[task.key] if task.body is None else node_from_json(task.body)

    def workflow(self, attempt_id: int) -> Workflow:
        return self._workflow

    def tasks(self, ids: Iterable[int]) -> list[Task]:
        return [self.all[task_id] for task_id in ids]

    def downstream(self, ids: Collection[int]) -> list[Link]:
        edges = [edge for task_id in ids for edge in self._by_upstream.get(task_id, ())]
        links = [Link(edge.upstream_id, self.all[edge.downstream_id], edge.is_setup) for edge in edges]
        return [link for link in links if not link.far.is_superseded]

    def upstream(self, ids: Collection[int]) -> list[Link]:
        edges = [edge for task_id in ids for edge in self._by_downstream.get(task_id, ())]
        links = [Link(edge.downstream_id, self.all[edge.upstream_id], edge.is_setup) for edge in edges]
        return [link for link in links if not link.far.is_superseded]

    def children(self, ids: Collection[int]) -> list[Task]:
        return [task for task_id in ids for task in self._by_parent.get(task_id, ()) if not task.is_superseded]

    def instances(self, mapped_ids: Collection[int], indexes: Collection[int]) -> list[Task]:
        return [task for task in self.children(mapped_ids) if task.is_instance and task.map_index in indexes]

    def by_key(self, attempt_id: int, keys: Collection[str]) -> list[Task]:
        return [task for task in self.live if task.key in keys and not task.is_instance]

    def unfinished(self, attempt_id: int) -> list[Task]:
        return [task for task in self.live if task.state not in FINISHED]

    def map_sources(self, attempt_id: int, keys: Collection[str]) -> dict[str, MapSource]:
        return {task.key: self._source(task) for task in self.by_key(attempt_id, keys)}

    def _source(self, task: Task) -> MapSource:
        results = sum(one.state is State.SUCCESS for one in self.children([task.id])) if task.kind == "mapped" else 0
        return source_of(task, results, self.lengths.get(task.id))

    def waits_for_past(self, task: Task, *, is_skipping: bool) -> bool:
        return task.key in self.held_up

    def new_ids(self, count: int) -> Sequence[int]:
        self._next_id += count
        return range(self._next_id - count, self._next_id)

    def carry_over(self, tasks: Sequence[Task]) -> list[Task]:
        raise AssertionError("this attempt resumes no other")

    def add(self, tasks: Sequence[Task], edges: Sequence[Edge]) -> None:
        for task in tasks:
            assert task.id not in self.all
            self.all[task.id] = task
            self._by_parent.setdefault(task.parent_id, []).append(task)
        for edge in edges:
            self.edges.append(edge)
            self._by_upstream.setdefault(edge.upstream_id, []).append(edge)
            self._by_downstream.setdefault(edge.downstream_id, []).append(edge)

    def add_trigger(self, task: Task, deferral: Deferral) -> None:
        assert task.state is State.DEFERRED
        self.triggers.append((task.name, deferral))

    def touch(self, task: Task) -> None:
        assert self.all[task.id] is task

    def record(self, event: Event) -> None:
        self.events.append(event)

    def send(self, task: Task, errand: Errand) -> None:
        self.errands.append((task.name, errand))

    @property
    def live(self) -> list[Task]:
        return [task for task in self.all.values() if not task.is_superseded]


class Engine:
    """Starts an attempt of a workflow; the test says how tries end and what else happens.

    Each verb settles, and then everything that must always hold is checked.
    """

    def __init__(
        self,
        workflow: Workflow,
        resumed: Collection[str] = (),
        is_checked: bool = True,
        is_started: bool = True,
    ) -> None:
        self._is_checked = is_checked
        self.graph = MemoryGraph(check_workflow(workflow))
        self.attempt = self.graph.the_attempt
        growth = grow_tasks(
            workflow.nodes,
            self.graph.new_ids(len(workflow.nodes)),
            attempt_id=1,
            under=None,
            generation=0,
            grown_by=None,
        )
        self.graph.add(growth.tasks, growth.edges)
        self.root = growth.tasks[0]
        self.attempt.root_id = self.root.id
        for task in growth.tasks:
            if task.key in resumed:
                task.state, task.children_open = State.SUCCESS, 0
        if is_started:
            self._settle(lambda advance: advance.start(self.attempt, self.root, self._all(resumed)))

    def _settle(self, apply) -> Advance:
        advance = Advance(self.graph)
        apply(advance)
        advance.settle()
        if self._is_checked:
            check(self)
        return advance

    def _all(self, names: Collection[str]) -> list[Task]:
        return [self.task(name) for name in names]

    # ---- what happens ------------------------------------------------------------------------------------------

    def claim(self, name: str | Task) -> Task:
        """An agent takes it and starts it."""
        task = self.task(name)
        self._claimed(task, State.QUEUED)
        self._claimed(task, State.RUNNING)
        if task.resume is None:
            task.started_at = self.graph.now
        return task

    def queue(self, name: str) -> Task:
        task = self.task(name)
        self._claimed(task, State.QUEUED)
        return task

    def _claimed(self, task: Task, state: State) -> None:
        check_move(task, state, Actor.CLAIM)
        self.graph.record(Event(1, task.id, task.state, state, Actor.CLAIM, task.try_number, self.graph.now))
        task.fence += state is State.QUEUED
        task.state = state

    def end(self, name: str | Task, outcome: str = "success", *, length: int | None = None, **fields) -> Task:
        """The task's try ends like this; it is claimed first if nobody has."""
        task = self.task(name)
        if task.state is State.SCHEDULED:
            self.claim(task)
        assert accepts(task, task.fence), f"{task.name} is {task.state}"
        if length is not None:
            self.graph.lengths[task.id] = length
        result = TaskResult(task_id=task.id, fence=task.fence, outcome=outcome, **fields)
        self._settle(lambda advance: advance.complete(task, result))
        return task

    def succeed(self, *names: str, **fields) -> None:
        for name in names:
            self.end(name, "success", **fields)

    def fail(self, *names: str, message: str = "boom", **fields) -> None:
        for name in names:
            self.end(name, "failed", error=TaskError(type="ValueError", message=message), **fields)

    def skip(self, *names: str) -> None:
        for name in names:
            self.end(name, "skipped")

    def fire(self, name: str | Task, **fields) -> None:
        """The trigger that the task waits for has this to tell."""
        task = self.task(name)
        self._settle(lambda advance: advance.fire(task, Fired(trigger_id=1, **fields)))

    def advance(self, seconds: float) -> None:
        """Time passes, and what is due wakes."""
        self.graph.now += round(seconds * SECOND)
        due = [t for t in self.graph.live if t.state in TIMED and t.due_at is not None and t.due_at <= self.graph.now]

        def wake(advance: Advance) -> None:
            for task in due:
                advance.wake(task)

        self._settle(wake)

    def clear(self, *names: str | Task) -> None:
        tasks = [self.task(name) for name in names]
        self._settle(lambda advance: advance.clear(tasks))

    def cancel(self) -> None:
        self._settle(lambda advance: advance.cancel(self.attempt))

    def time_out(self, unfinished_become: State = State.SKIPPED) -> None:
        self._settle(lambda advance: advance.time_out(self.attempt, unfinished_become))

    def do(self, apply) -> Advance:
        """Anything else, settled."""
        return self._settle(apply)

    # ---- what is true ------------------------------------------------------------------------------------------

    def task(self, name: str | Task) -> Task:
        """The live task with this name (`key` or `key[index]`)."""
        if isinstance(name, Task):
            return name
        found = [task for task in self.graph.live if task.name == name]
        assert len(found) == 1, f"{len(found)} live tasks are called {name}"
        return found[0]

    def state(self, name: str) -> str:
        return str(self.task(name).state)

    def states(self) -> dict[str, str]:
        """Of everything below the root that is live."""
        return {task.name: str(task.state) for task in self.graph.live if task.parent_id is not None}

    def story(self, name: str) -> list[str]:
        """The states that the live task with this name has been through."""
        return [event.after for event in self.graph.events if event.task_id == self.task(name).id]

    def generations(self, key: str) -> list[str]:
        """The states of all generations of a task, oldest first."""
        return [str(task.state) for task in self.graph.all.values() if task.key == key and not task.is_instance]

    @property
    def claimable(self) -> list[Task]:
        return [task for task in self.graph.live if task.state is State.SCHEDULED]

    @property
    def held(self) -> list[Task]:
        return [task for task in self.graph.all.values() if task.state in HELD]

    @property
    def waiting(self) -> list[Task]:
        return [task for task in self.graph.live if task.state in TIMED]


# ---- definitions in one line ----------------------------------------------------------------------------------


def task(key: str, *upstream: str, parent: str = "", **fields) -> Node:
    return Node(**{"key": key, "parent": parent, "upstream": upstream, "operator": "work", **fields})


def group(key: str, *upstream: str, parent: str = "", **fields) -> Node:
    return Node(key=key, parent=parent, upstream=upstream, kind="group", **fields)


def mapped(key: str, over: str | int, *upstream: str, parent: str = "", **fields) -> Node:
    """A task that is mapped over the result of an upstream task, or over a literal of some length."""
    if isinstance(over, int):
        expand = Length(op="literal", length=over)
    else:
        expand, upstream = Length(op="result", task=over), (over, *upstream)
    return Node(key=key, parent=parent, upstream=upstream, kind="mapped", operator="work", expand=expand, **fields)


def workflow(*nodes: Node, **root_fields) -> Workflow:
    return Workflow(name="w", language="python", nodes=(Node(key="", kind="group", **root_fields), *nodes))


def dag(*nodes: Node) -> Workflow:
    """A Python DAG: only what nobody waits for decides the run."""
    waited_for = {key for node in nodes for key in node.upstream}
    deciding = [_with(node, decides=node.key not in waited_for) for node in nodes]
    return workflow(*deciding)


def _with(node: Node, **fields) -> Node:
    return Node(**{name: getattr(node, name) for name in node.__struct_fields__} | fields)


def start(*nodes: Node) -> Engine:
    """A new attempt of a Python DAG."""
    return Engine(dag(*nodes))


def start_tree(*nodes: Node, **root_fields) -> Engine:
    """A new attempt of a tree whose every task decides, as in `.dig`."""
    return Engine(workflow(*nodes, **root_fields))


def retry(limit: int, delay_seconds: float = 0.0, **fields) -> Retry:
    return Retry(limit=limit, delay_seconds=delay_seconds, **fields)
