"""Which runs an earlier run holds up, computed the slow way from nothing but rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headrace.definition import Past, Workflow
from headrace.store import Database
from headrace.store.sql import Sql

RUNS = Sql(
    """
    SELECT run.id, run.workflow_id, run.type, run.logical_at, attempt.id, attempt.state, attempt.root_id
    FROM run JOIN attempt ON attempt.run_id = run.id ORDER BY attempt.id
    """
)
TASKS = Sql("SELECT attempt_id, key, state FROM task WHERE NOT is_superseded")
_FINE = ("success", "skipped", "removed")


def held_up_attempts(database: Database, workflows: Mapping[int, Workflow]) -> list[int]:
    """Running attempts with a task that waits for the run before, which has ended without letting it go."""
    with database.read() as tx:
        # Ordered by attempt, so that the newest attempt of a run is the one that stays.
        runs = {row[0]: row for row in tx.run(RUNS)}
        states: dict[tuple[int, str], list[str]] = {}
        for attempt_id, key, state in tx.run(TASKS):
            states.setdefault((attempt_id, key), []).append(state)
    return [
        run[4]
        for run in runs.values()
        if run[5] == "running" and any(_is_held_up(run, node, runs, states, workflows[run[1]])
                                       for node in workflows[run[1]].nodes if node.past is not None)
    ]  # fmt: skip


def _is_held_up(run: Any, node: Any, runs: Any, states: Any, workflow: Workflow) -> bool:
    if "none" not in states.get((run[4], node.key), ()) or run[3] is None:
        return False
    before = _run_before(run, node.past, runs)
    if before is None:
        return False
    own = states.get((before[4], node.key), ["none"])
    following = [one.key for one in workflow.nodes if node.key in one.upstream] if node.past.with_downstream else []
    others = [state for key in following for state in states.get((before[4], key), ["none"])]
    return any(state not in _FINE for state in (*own, *others))


def _run_before(run: Any, past: Past, runs: Any) -> Any:
    earlier = [
        other
        for other in runs.values()
        if other[1] == run[1] and other[3] is not None and other[3] < run[3]
        and not (past.skips_manual and other[2] == "manual")
        and not (other[5] not in ("queued", "running") and other[6] is None)
    ]  # fmt: skip
    return max(earlier, key=lambda other: (other[3], other[0]), default=None)
