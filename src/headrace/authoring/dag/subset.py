"""A part of a DAG as a DAG of its own, for tests and for trying things out."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterable
from typing import Any

from headrace.authoring.dag.group import TaskGroup
from headrace.authoring.dag.naming import IdPool


def partial_dag(
    dag: Any, chosen: str | Iterable[str], *, downstream: bool, upstream: bool, direct_upstream: bool
) -> Any:
    """A copy that has only the chosen tasks, and what is asked for of the tasks around them.

    A text chooses all tasks whose ids match it as a regular expression anywhere.
    """
    tasks = dag.task_dict
    ids = [key for key in tasks if re.search(chosen, key)] if isinstance(chosen, str) else list(chosen)
    kept = {dag.get_task(key).task_id for key in ids}
    for key in ids:
        kept |= tasks[key].get_flat_relative_ids(upstream=False) if downstream else set()
        kept |= tasks[key].get_flat_relative_ids(upstream=True) if upstream else set()
        kept |= tasks[key].upstream_task_ids if direct_upstream else set()
    part = copy.copy(dag)
    part.ids = IdPool()
    part.params = copy.deepcopy(dag.params)
    part.edge_labels = {edge: label for edge, label in dag.edge_labels.items() if kept.issuperset(edge)}
    part.take_tasks(_copied(dag.task_group, None, part, kept), {key: tasks[key] for key in tasks if key in kept})
    return part


def _copied(group: TaskGroup, parent: TaskGroup | None, dag: Any, kept: set[str]) -> TaskGroup:
    """The group with copies of the tasks that are kept; groups that have none are left out."""
    twin = copy.copy(group)
    twin.dag, twin.parent_group, twin.children = dag, parent, {}
    for key, child in group.children.items():
        if isinstance(child, TaskGroup):
            inner = _copied(child, twin, dag, kept)
            if inner.children:
                dag.ids.claim("task group id", key)
                twin.children[key] = inner
        elif key in kept:
            dag.ids.claim("task id", key)
            task = twin.children[key] = copy.copy(child)
            task.dag, task.task_group = dag, twin
            task.upstream_task_ids = child.upstream_task_ids & kept
            task.downstream_task_ids = child.downstream_task_ids & kept
    return twin
