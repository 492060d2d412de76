"""A new attempt may carry over what an earlier attempt of the run finished.

Tasks are matched by their keys. A task that had succeeded is inserted as done, with its results and with everything
that it grew or was mapped into, so that parameters which were stored below it are still there. A mapped task that had
failed keeps the instances that succeeded. Groups are never carried over: they close by themselves.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Collection, Mapping, Sequence

from headrace.definition import Node
from headrace.state import Attempt, Edge, State, Task, new_task
from headrace.store.attempt_plans import AttemptPlan
from headrace.store.database import Transaction
from headrace.store.sql import Sql
from headrace.store.task_rows import SELECTED, to_task

# Without a try nothing was done: it was only rehearsed.
CANDIDATES = Sql(
    f"""
    SELECT {SELECTED} FROM task
    WHERE attempt_id = :attempt_id AND key IN :keys[] AND map_index = :map_index AND NOT is_superseded
      AND ((kind = 'task' AND state = 'success' AND try_number > 0) OR (kind = 'mapped' AND children > 0))
    """
)
BELOW = Sql(
    f"""
    WITH RECURSIVE tree (id) AS (
      SELECT task.id FROM task WHERE task.parent_id IN :ids[] AND NOT task.is_superseded
      UNION ALL
      SELECT task.id FROM task JOIN tree ON task.parent_id = tree.id WHERE NOT task.is_superseded
    )
    SELECT {SELECTED} FROM task WHERE task.id IN (SELECT id FROM tree) ORDER BY task.id
    """
)
EDGES = Sql(
    "SELECT upstream_id, downstream_id, is_setup FROM edge WHERE upstream_id IN :ids[] AND downstream_id IN :ids[]"
)
COPY_VALUES = Sql(
    """
    INSERT INTO value (task_id, name, attempt_id, kind, document, length)
    SELECT r.new_id, value.name, r.attempt_id, value.kind, value.document, value.length
    FROM value JOIN (SELECT * FROM ROWS(:rows)) AS r ON r.old_id = value.task_id
    """,
    rows=(("old_id", "bigint"), ("new_id", "bigint"), ("attempt_id", "bigint")),
)
MARK_STORES = Sql(
    """
    UPDATE attempt SET has_stores = :yes
    WHERE id = :id AND EXISTS (SELECT 1 FROM value WHERE attempt_id = :id AND kind IN ('export', 'store'))
    """
)

NewIds = Callable[[int], Sequence[int]]


class CarriedOver:
    """What a set of new tasks gets from the attempt before. The caller adds `tasks` and `edges` to the graph."""

    def __init__(self, attempt_id: int, nodes: Mapping[int, Node]) -> None:
        self._attempt_id = attempt_id
        self._nodes = nodes
        self._new_ids: dict[int, int] = {}
        self._copies: list[tuple[int, int]] = []
        self.resumed: list[Task] = []
        """Those of the new tasks that are done, or that have instances which are."""
        self.tasks: list[Task] = []
        self.edges: list[Edge] = []

    def take(self, new: Task, old: Task, below: Sequence[Task], ids: Sequence[int]) -> None:
        """Carry one task over, with what is below it. `ids` are fresh ones, as many as there are tasks below."""
        self._new_ids[old.id] = new.id
        is_done = old.state is State.SUCCESS
        if is_done:
            _end_as(new, old)
            self._copies.append((old.id, new.id))
        new.children, new.children_open = old.children, old.children_open
        new.children_failed, new.children_skipped = old.children_failed, old.children_skipped
        self.resumed.append(new)
        lost: set[int] = set()
        for child, task_id in zip(below, ids, strict=True):
            if child.parent_id in lost:
                lost.add(child.id)  # what an instance that failed had grown
                continue
            self._new_ids[child.id] = task_id
            if is_done or child.origin_id != old.id or child.state in (State.SUCCESS, State.REMOVED):
                self.tasks.append(self._copy(child, task_id))
            else:
                lost.add(child.id)
                self.tasks.append(self._fresh_instance(new, child, task_id))

    def connect(self, edges: Collection[tuple[int, int, bool]]) -> None:
        """Give what was copied the edges that it had."""
        copied = {task.id for task in self.tasks}
        for upstream, downstream, is_setup in edges:
            ends = self._new_ids.get(upstream, 0), self._new_ids.get(downstream, 0)
            if copied.issuperset(ends):
                self.edges.append(Edge(*ends, bool(is_setup)))

    def value_copies(self) -> list[dict[str, int]]:
        return [{"old_id": old, "new_id": new, "attempt_id": self._attempt_id} for old, new in self._copies]

    def _copy(self, old: Task, task_id: int) -> Task:
        self._copies.append((old.id, task_id))
        new = copy.copy(old)
        new.id, new.attempt_id, new.version, new.fence, new.agent_id = task_id, self._attempt_id, 0, 0, None
        new.parent_id = self._new_ids[old.parent_id or 0]
        new.origin_id = self._new_ids.get(old.origin_id, task_id)
        new.grown_by = None if old.grown_by is None else self._new_ids.get(old.grown_by, new.parent_id)
        return new

    def _fresh_instance(self, mapped: Task, old: Task, task_id: int) -> Task:
        """An instance that had not succeeded: it begins anew, as the mapped task now says."""
        node = self._nodes[mapped.id]
        new = new_task(
            node,
            task_id,
            attempt_id=self._attempt_id,
            parent_id=mapped.id,
            generation=mapped.generation,
            grown_by=mapped.grown_by,
            body=mapped.body,
        )
        new.kind, new.decides, new.max_tries = "task", True, node.retry.limit
        new.origin_id, new.map_index = mapped.id, old.map_index
        return new


def find_carried_over(
    tx: Transaction,
    attempt: Attempt,
    plan: AttemptPlan,
    tasks: Sequence[Task],
    nodes: Mapping[int, Node],
    new_ids: NewIds,
) -> CarriedOver:
    """What new tasks of an attempt get from the one that it resumes; their results are copied at once."""
    carried = CarriedOver(attempt.id, nodes)
    by_key = {task.key: task for task in tasks if task.kind != "group"}
    if attempt.resumes_attempt_id is None or not by_key:
        return carried
    done = _candidates(tx, attempt, plan, by_key, tasks[0].map_index)
    below = _below(tx, [old for _, old in done])
    for new, old in done:
        children = below.get(old.id, [])
        carried.take(new, old, children, new_ids(len(children)))
    old_ids = [task.id for tasks_below in below.values() for task in tasks_below]
    if old_ids:
        carried.connect([(row[0], row[1], bool(row[2])) for row in tx.run(EDGES, {"ids": old_ids})])
    if carried.value_copies():
        tx.write_each(COPY_VALUES, carried.value_copies())
        tx.change(MARK_STORES, {"id": attempt.id, "yes": True})
    return carried


def _candidates(
    tx: Transaction, attempt: Attempt, plan: AttemptPlan, by_key: Mapping[str, Task], map_index: int
) -> list[tuple[Task, Task]]:
    keys = list(by_key) if plan.carried is None else sorted(by_key.keys() & set(plan.carried))
    parameters = {"attempt_id": attempt.resumes_attempt_id, "keys": keys, "map_index": map_index}
    old = [to_task(row) for row in tx.run(CANDIDATES, parameters)]
    pairs = [(by_key[one.key], one) for one in old if by_key[one.key].kind == one.kind]
    # In the order of the new tasks, so that ids go on following the file.
    return sorted(pairs, key=lambda pair: pair[0].id)


def _below(tx: Transaction, tops: Sequence[Task]) -> dict[int, list[Task]]:
    """Everything below tasks of the earlier attempt, by the task that it is below of."""
    top_ids = [task.id for task in tops if task.children]
    top_of = {task_id: task_id for task_id in top_ids}
    found: dict[int, list[Task]] = {}
    for row in tx.run(BELOW, {"ids": top_ids}) if top_ids else ():
        task = to_task(row)
        top_of[task.id] = top_of[task.parent_id or 0]
        found.setdefault(top_of[task.id], []).append(task)
    return found


def _end_as(new: Task, old: Task) -> None:
    new.state, new.try_number, new.decision = old.state, old.try_number, old.decision
    new.started_at, new.ended_at = old.started_at, old.ended_at
