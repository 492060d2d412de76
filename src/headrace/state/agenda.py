"""What was decided and not yet followed up, and the few verbs by which every decision changes a task."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from headrace.definition import Ending, Node
from headrace.handoff import RUN_ENDED, TRY_DIED, Errand, TaskError
from headrace.state.counting import count_children, count_upstream, credit, credit_parent
from headrace.state.graph import Graph, Link
from headrace.state.growth import Edge, grow_tasks
from headrace.state.lockstep import instances_told, waiting_behind, with_counting_instances
from headrace.state.needing import those_in_need
from headrace.state.task import FINISHED, Actor, Attempt, Event, State, Task, check_move

NOT_TAKEN = "a branch was not taken"
TIMED_OUT = "timed_out"
"""Why an attempt ended that took too long."""
_IN_WORDS = {TIMED_OUT: "the run took too long"}
_json = msgspec.json.Encoder()


def told(reason: str) -> str:
    """What is kept in place of an error where no try failed, but the task was ended for a reason."""
    return _json.encode(TaskError(type="", message=_IN_WORDS.get(reason, reason))).decode()


class Agenda:
    """The open ends of one transaction's decisions."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.finished: list[Task] = []
        """Ended, but nobody who waits for them knows it yet."""
        self.touched: dict[int, Task] = {}
        """May have become decidable."""
        self.opened: list[Task] = []
        """Their children may have become decidable."""
        self.closable: dict[int, Task] = {}
        """May have no open child left."""
        self.scheduled: list[Task] = []
        self.ended: list[Attempt] = []

    @property
    def has_open_ends(self) -> bool:
        return bool(self.finished or self.touched or self.opened or self.closable)

    def is_cancelled(self, task: Task) -> bool:
        return self.graph.attempt(task.attempt_id).is_cancel_requested

    # ---- one task ----------------------------------------------------------------------------------------------

    def move(self, task: Task, after: State, actor: Actor, reason: str | None = None) -> None:
        """The only place where a state changes: checked against the table and recorded."""
        check_move(task, after, actor)
        event = Event(task.attempt_id, task.id, task.state, after, actor, task.try_number, self.graph.now, reason)
        task.state = after
        self.graph.touch(task)
        self.graph.record(event)

    def touch(self, task: Task) -> None:
        """Look at it again: what it waits for may have changed."""
        self.graph.touch(task)
        self.touched[task.id] = task

    def schedule(self, task: Task, actor: Actor, *, is_new_try: bool) -> None:
        if is_new_try:
            # Counted before an agent takes it, so a crash while starting still uses the try.
            task.try_number += 1
            task.resume = None
        task.due_at = None
        task.scheduled_at = self.graph.now
        self.move(task, State.SCHEDULED, actor)
        self.scheduled.append(task)

    def open_children(self, task: Task) -> None:
        if task.children_open == 0:
            self.closable[task.id] = task
        else:
            self.opened.append(task)

    def finish(self, task: Task, state: State, actor: Actor, reason: str | None = None) -> None:
        """End a task; a group that never opens takes everything below it along."""
        never_opened = task.state is State.NONE and task.children_open > 0
        self._end(task, state, actor, reason)
        if never_opened:
            self.abandon(task, state, actor)

    def change_end(self, task: Task, state: State, actor: Actor, reason: str | None = None) -> None:
        """Let a task that has ended have ended otherwise: whoever still waits for it sees only that.

        What encloses it must still be open.
        """
        self.credit_finished()
        (parent,) = self.graph.tasks([task.parent_id or 0])
        if parent.state is State.PLANNED:
            self.move(task, state, actor, reason)
            count_children(self.graph, [parent])
            self.count_upstream([link.far for link in self.graph.downstream([task.origin_id])])

    def abandon(self, task: Task, state: State, actor: Actor) -> None:
        """End whatever is not finished below a task that will not open any more."""
        below = self.graph.children([task.id])
        while below:
            for child in below:
                if child.state is State.RESTARTING:
                    # Its process is being stopped already, and its agent's report will find nothing to change.
                    self._end(child, State.CANCELED, actor)
                elif child.state not in FINISHED:
                    self._end(child, state, actor)
            below = self._below(below)

    def _end(self, task: Task, state: State, actor: Actor, reason: str | None = None) -> None:
        task.ended_at = self.graph.now
        task.agent_id, task.due_at = None, None
        if reason is not None and state is State.FAILED and task.state is not State.PLANNED:
            # What it has is of the try before, if of any. Whatever is open tells what failed in it.
            task.error = told(reason)
        self.move(task, state, actor, reason)
        self.finished.append(task)

    def call_back(self, task: Task, ending: Ending, error: TaskError | None) -> None:
        """A try's process died before it could call user code about its end: somebody else does."""
        if ending in self.graph.node(task).calls_back:
            payload = {"ending": ending, "error": "" if error is None else error.message}
            self.graph.send(task, Errand(kind=TRY_DIED, payload=payload))

    # ---- a subtree ---------------------------------------------------------------------------------------------

    def grow(self, task: Task, nodes: Sequence[Node], grown_by: int | None) -> list[Task]:
        """Add tasks for these nodes under a task."""
        attempt = self.graph.attempt(task.attempt_id)
        attempt.growth, attempt.is_changed = attempt.growth + 1, True
        ids = self.graph.new_ids(len(nodes))
        growth = grow_tasks(
            nodes, ids, attempt_id=task.attempt_id, under=task, generation=attempt.growth, grown_by=grown_by
        )
        for grown in growth.tasks:
            # Each instance of a mapped task grows tasks of its own, with the same keys.
            grown.map_index = task.map_index
        self.graph.add(growth.tasks, growth.edges)
        self.graph.touch(task)
        return growth.tasks

    def drop_children(self, task: Task, actor: Actor) -> list[Task]:
        """Supersede everything below a task and return it, in file order."""
        dropped = self.supersede(self.graph.children([task.id]), actor) if task.children else []
        task.children = task.children_open = task.children_failed = task.children_skipped = 0
        task.is_failing = False
        self.graph.touch(task)
        return dropped

    def supersede(self, tasks: Iterable[Task], actor: Actor) -> list[Task]:
        """Take tasks and everything below them out of the attempt's present; what still runs is stopped."""
        dropped: list[Task] = []
        below = list(tasks)
        while below:
            for child in below:
                child.is_superseded = True
                if child.state in FINISHED:
                    self.graph.touch(child)
                else:
                    self._end(child, State.CANCELED, actor, "a newer generation took its place")
            dropped += below
            below = self._below(below)
        return sorted(dropped, key=lambda one: one.id)

    def _below(self, tasks: Iterable[Task]) -> list[Task]:
        # A mapped task whose instances were all removed counts no children, but has them.
        parents = [task.id for task in tasks if task.children or task.kind == "mapped"]
        return self.graph.children(parents) if parents else []

    def regenerate(self, task: Task, actor: Actor) -> None:
        """Replace everything below a group by its next generation."""
        # What was inserted together with the group is inserted again; what its tasks grew, they will grow again.
        before = [
            old
            for old in self.drop_children(task, actor)
            if old.grown_by == task.grown_by and not old.is_instance
        ]  # fmt: skip
        after = self.grow(task, [self.graph.node(old) for old in before], grown_by=task.grown_by)
        self._reconnect({old.id: new for old, new in zip(before, after, strict=True)})

    def _reconnect(self, successors: dict[int, Task]) -> None:
        """Give a new generation the edges that its predecessors had with tasks outside the group."""
        incoming = [link for link in self.graph.upstream(list(successors)) if not link.far.is_superseded]
        outgoing = [link for link in self.graph.downstream(list(successors)) if not link.far.is_superseded]
        edges = [Edge(link.far.id, successors[link.near_id].id, link.is_setup) for link in incoming]
        edges += [Edge(successors[link.near_id].id, link.far.id, link.is_setup) for link in outgoing]
        if edges:
            self.graph.add((), edges)
            self.count_upstream([*(successors[link.near_id] for link in incoming), *(link.far for link in outgoing)])

    # ---- counters ----------------------------------------------------------------------------------------------

    def credit_finished(self) -> None:
        """Tell those that wait for the finished tasks, and their parents."""
        finished, self.finished = [task for task in self.finished if not task.is_superseded], []
        crediting = {task.origin_id for task in finished if not task.is_expanded}
        links: dict[int, list[Link]] = {}
        for link in self.graph.downstream(crediting) if crediting else ():
            links.setdefault(link.near_id, []).append(link)
        parents = {p.id: p for p in self.graph.tasks({t.parent_id for t in finished if t.parent_id is not None})}
        for task in finished:
            for link in links.get(task.origin_id, ()) if not task.is_expanded else ():
                for told in (link.far, *instances_told(self.graph, task, link)):
                    credit(told, task.state, is_setup=link.is_setup)
                    self.touch(told)
            self.touch_beyond([task], [link.far for link in links.get(task.origin_id, ()) if not task.is_expanded])
            if task.parent_id is None:
                self._end_attempt(task)
            else:
                self._credit_parent(parents[task.parent_id], task)

    def touch_beyond(self, ended: Iterable[Task], next_ones: Iterable[Task]) -> None:
        """Have those looked at whom the end of tasks concerns and no edge tells; edges tell `next_ones`."""
        for far in next_ones:
            for waiting in waiting_behind(self.graph, far):
                self.touch(waiting)
        for task in ended:
            for waiting in those_in_need(self.graph, task):
                self.touch(waiting)

    def count_upstream(self, tasks: Iterable[Task]) -> None:
        """Count anew what these wait for. What a branch has decided against stays skipped."""
        self.credit_finished()
        tasks = with_counting_instances(self.graph, tasks)
        excluded = count_upstream(self.graph, tasks)
        for task in tasks:
            self.touch(task)
        for task in excluded:
            if task.state is State.NONE:
                self.finish(task, State.SKIPPED, Actor.ADVANCE, NOT_TAKEN)

    def _credit_parent(self, parent: Task, child: Task) -> None:
        credit_parent(parent, child)
        self.graph.touch(parent)
        if parent.children_open == 0:
            self.closable[parent.id] = parent

    def _end_attempt(self, root: Task) -> None:
        attempt = self.graph.attempt(root.attempt_id)
        before, attempt.state = attempt.state, str(root.state)
        attempt.ended_at, attempt.is_changed = self.graph.now, True
        self.graph.record(
            Event(attempt.id, None, before, attempt.state, Actor.ADVANCE, 0, self.graph.now, attempt.reason)
        )
        self.ended.append(attempt)
        if attempt.marked_as is None and attempt.state in self.graph.node(root).calls_back:
            self.graph.send(root, Errand(kind=RUN_ENDED, payload={"state": attempt.state, "reason": attempt.reason}))
