"""From nodes of a definition to tasks of an attempt: the one mechanism behind starting, growing and retrying."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from headrace.definition import Node, to_json
from headrace.state.task import State, Task

INLINE_QUEUE = "inline"
"""Where tasks wait that any agent can finish by itself."""


class Edge(NamedTuple):
    upstream_id: int
    downstream_id: int
    is_setup: bool


class Growth(NamedTuple):
    tasks: list[Task]
    edges: list[Edge]


def grow_tasks(
    nodes: Sequence[Node],
    ids: Sequence[int],
    *,
    attempt_id: int,
    under: Task | None,
    generation: int,
    grown_by: int | None,
) -> Growth:
    """Tasks in state `none` for nodes in file order, each with its edges and counters.

    A node whose parent is not among the nodes is put directly under `under`; without `under` it is the root.
    """
    id_of = {node.key: task_id for node, task_id in zip(nodes, ids, strict=True)}
    under_id = None if under is None else under.id
    parent_of = {node.key: id_of.get(node.parent, under_id) if node.parent is not None else under_id for node in nodes}
    child_count = Counter(parent_of.values())
    tasks, edges = [], []
    for node in nodes:
        task_id = id_of[node.key]
        known = [key for key in node.upstream if key in id_of]
        edges += [Edge(id_of[key], task_id, key in node.setups) for key in known]
        body = None if grown_by is None else to_json(node).decode()
        tasks.append(
            new_task(
                node,
                task_id,
                attempt_id=attempt_id,
                parent_id=parent_of[node.key],
                generation=generation,
                grown_by=grown_by,
                body=body,
                expected=len(known),
                setups=len([key for key in known if key in node.setups]),
                children=child_count[task_id],
            )
        )
    if under is not None:
        under.children += child_count[under.id]
        under.children_open += child_count[under.id]
    return Growth(tasks, edges)


def new_task(
    node: Node,
    task_id: int,
    *,
    attempt_id: int,
    parent_id: int | None,
    generation: int,
    grown_by: int | None,
    body: str | None,
    expected: int = 0,
    setups: int = 0,
    children: int = 0,
) -> Task:
    """A task in state `none` that has seen nothing yet."""
    return Task(
        id=task_id,
        attempt_id=attempt_id,
        parent_id=parent_id,
        origin_id=task_id,
        grown_by=grown_by,
        key=node.key,
        map_index=-1,
        generation=generation,
        kind=node.kind,
        isolation=node.isolation,
        operator=node.operator,
        trigger_rule=node.trigger_rule,
        decides=node.decides,
        body=body,
        priority=node.priority,
        pool=node.pool,
        pool_slots=node.pool_slots,
        # What needs no process needs no slot of a certain queue either: any agent takes it.
        queue=INLINE_QUEUE if node.isolation == "inline" else node.queue,
        timeout_seconds=node.timeout_seconds,
        state=State.NONE,
        version=0,
        fence=0,
        agent_id=None,
        try_number=0,
        # The instances of a mapped node are retried one by one; the node itself only counts them.
        max_tries=0 if node.kind == "mapped" else node.retry.limit,
        expected=expected,
        succeeded=0,
        skipped=0,
        failed=0,
        upstream_failed=0,
        removed=0,
        setups=setups,
        setups_succeeded=0,
        setups_skipped=0,
        children=children,
        children_open=children,
        children_failed=0,
        children_skipped=0,
        is_failing=False,
        is_superseded=False,
        due_at=None,
        scheduled_at=None,
        queued_at=None,
        started_at=None,
        first_started_at=None,
        ended_at=None,
        error=None,
        decision=None,
        poll_state=None,
        resume=None,
    )
