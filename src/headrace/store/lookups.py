"""Workflows, runs and tasks as the tasks of other runs see them: found by names, run keys and logical times."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from headrace.definition import Node
from headrace.errors import NotFoundError, UsageError, did_you_mean
from headrace.store.database import Transaction
from headrace.store.reading import RunRow, WorkflowRow, get_run, workflow_names, workflows_named
from headrace.store.sql import Sql

RUNS_BY_KEY = Sql("SELECT id FROM run WHERE workflow_id = :workflow_id AND key IN :keys[]")
RUNS_BY_TIME = Sql("SELECT id FROM run WHERE workflow_id = :workflow_id AND logical_at IN :times[]")
NEWEST_RUN = Sql("SELECT max(id) FROM run WHERE workflow_id = :workflow_id")
# A mapped task that has instances is told by them.
TASK_COUNTS = Sql(
    """
    SELECT key, state, count(*) FROM task
    WHERE attempt_id = :attempt_id AND NOT is_superseded AND parent_id IS NOT NULL
      AND NOT (kind = 'mapped' AND children > 0)
    GROUP BY key, state ORDER BY min(id)
    """
)


def workflow_for(tx: Transaction, name: str, project: str | None, near: str) -> WorkflowRow:
    """A workflow by name: of that project; without one of the project `near` by, else of the only one that has it."""
    found = [row for row in workflows_named(tx, name) if not row.is_gone]
    chosen = [row for row in found if row.project == (project or near)]
    if not chosen and project is None:
        chosen = found
    if len(chosen) == 1:
        return chosen[0]
    if chosen:
        projects = ", ".join(f"`{row.project}`" for row in chosen)
        raise UsageError(f"workflow `{name}` exists in several projects: {projects}")
    where = "" if project is None else f" in project `{project}`"
    raise NotFoundError(f"there is no workflow `{name}`{where}", hint=did_you_mean(name, workflow_names(tx)))


def runs_by_key(tx: Transaction, workflow_id: int, keys: Sequence[str]) -> list[RunRow]:
    """The runs of a workflow that have these keys, newest first."""
    return _runs(tx, RUNS_BY_KEY, {"workflow_id": workflow_id, "keys": list(keys)})


def runs_by_time(tx: Transaction, workflow_id: int, times: Sequence[int]) -> list[RunRow]:
    """The runs of a workflow for these logical times, newest first."""
    return _runs(tx, RUNS_BY_TIME, {"workflow_id": workflow_id, "times": list(times)})


def newest_run(tx: Transaction, workflow_id: int) -> list[RunRow]:
    """The run of a workflow that was made last, if there is one."""
    return _runs(tx, NEWEST_RUN, {"workflow_id": workflow_id})


def task_counts(tx: Transaction, attempt_id: int) -> dict[str, dict[str, int]]:
    """Key → state → how many live tasks, instances counted one by one. An attempt that waits has none yet."""
    counts: dict[str, dict[str, int]] = {}
    for key, state, count in tx.run(TASK_COUNTS, {"attempt_id": attempt_id}):
        counts.setdefault(key, {})[state] = int(count)
    return counts


def is_within(key: str, group: str, nodes: Mapping[str, Node]) -> bool:
    """Whether a task belongs to a group: it lies below it, or its name begins with the group's."""
    if key.startswith(f"{group}."):
        return True
    node = nodes.get(key)
    while node is not None and node.parent is not None:
        if node.parent == group:
            return True
        node = nodes.get(node.parent)
    return False


def _runs(tx: Transaction, statement: Sql, parameters: dict[str, object]) -> list[RunRow]:
    # Sorted here: asked for an order, a database may rather read all runs in it than find these.
    ids = sorted((run_id for (run_id,) in tx.run(statement, parameters) if run_id is not None), reverse=True)
    return [row for row in (get_run(tx, run_id) for run_id in ids) if row is not None]
