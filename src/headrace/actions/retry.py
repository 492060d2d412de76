"""Run a run again as a new attempt that carries over what succeeded."""

from __future__ import annotations

from typing import Any, NamedTuple

from headrace.actions.choosing import matching, tree_of_tasks
from headrace.actions.finding import find_run
from headrace.actions.params import settled
from headrace.actions.start import version_of_revision
from headrace.clock import Clock, to_micros
from headrace.errors import StateError
from headrace.state import preceding
from headrace.store import (
    AttemptPlan,
    Definitions,
    RunRow,
    Store,
    Transaction,
    add_attempt,
    end_idle_pause,
    get_run,
    list_attempts,
    list_edges,
    list_tasks,
    start_attempt,
    start_queued_runs,
    version_of_attempt,
    workflows_named,
)


class Again(NamedTuple):
    """How a run is run again."""

    is_resuming: bool = True
    """Without what succeeded; otherwise everything runs again."""
    resumes_from: str | None = None
    """Carry over only what comes before this task."""
    keeps_version: bool = False
    """With the version of the workflow that the attempt had; otherwise with the newest …"""
    revision: str | None = None
    """… or with that of a pushed revision."""
    name: str = ""
    params: dict[str, Any] = {}
    """Added to those that the attempt had."""
    is_private: bool = False
    """Start at once, whatever limits and pauses say."""


def retry(store: Store, clock: Clock, name: str, again: Again | None = None) -> RunRow:
    """A new attempt of a run that has ended, by default with the newest version and without what succeeded."""
    return store.transact(lambda tx: _retry(tx, clock, name, again or Again()))


def _retry(tx: Transaction, clock: Clock, name: str, again: Again) -> RunRow:
    run = find_run(tx, name)
    now = to_micros(clock.now())
    current = get_run(tx, run.id) or run
    if current.is_active:
        hint = f"`headrace kill {run.id}` stops it"
        raise StateError(f"cannot retry run {run.id}: it is still `{current.state}`", hint=hint)
    if run.state == "success" and again.is_resuming and again.resumes_from is None:
        hint = f"`headrace retry {run.id} --all` runs everything again"
        raise StateError(f"run {run.id} of `{run.workflow}` succeeded: there is nothing to retry", hint=hint)
    _refuse_same_name(tx, run, again.name)
    resumes = run.attempt_id if again.is_resuming or again.resumes_from is not None else None
    version_id, plan = _version(tx, run, again), _plan(tx, run, again)
    end_idle_pause(tx, run.id)
    attempt_id = add_attempt(tx, run.id, run.workflow_id, resumes, again.name, now, version_id, plan)
    if again.is_private:
        start_attempt(tx, attempt_id, now)
    else:
        start_queued_runs(tx, run.workflow_id, now)
    tx.tell()
    return get_run(tx, run.id) or run


def _refuse_same_name(tx: Transaction, run: RunRow, name: str) -> None:
    same = next((one for one in list_attempts(tx, run.id) if name and one.name == name), None)
    if same is not None:
        raise StateError(f"run {run.id} already has an attempt called `{name}`: {same.label} is `{same.state}`")


def _version(tx: Transaction, run: RunRow, again: Again) -> int | None:
    if again.keeps_version:
        return version_of_attempt(tx, run.attempt_id)
    if again.revision is None:
        return None
    (row,) = (one for one in workflows_named(tx, run.workflow) if one.id == run.workflow_id)
    return version_of_revision(tx, row, again.revision)


def _plan(tx: Transaction, run: RunRow, again: Again) -> AttemptPlan:
    (before,) = (one for one in list_attempts(tx, run.id) if one.id == run.attempt_id)
    params = {**before.params, **_given(tx, run, again)}
    carried = None if again.resumes_from is None else _before(tx, run, again.resumes_from)
    return AttemptPlan(params=params if again.params or before.number > 1 else None, carried=carried)


def _given(tx: Transaction, run: RunRow, again: Again) -> dict[str, Any]:
    if not again.params:
        return {}
    version_id = version_of_attempt(tx, run.attempt_id)
    return settled(tx.shared(Definitions).version(tx, version_id).workflow.language, again.params)


def _before(tx: Transaction, run: RunRow, pattern: str) -> tuple[str, ...]:
    """Keys of what comes before a task, all of which must have succeeded."""
    tasks = list_tasks(tx, run.attempt_id)
    tree = tree_of_tasks(tasks, list_edges(tx, run.attempt_id))
    names = preceding(tree, matching(tree, pattern, f"`headrace tasks {run.id}` lists them"))
    undone = [task for task in tasks if task.name in names and task.state not in ("success", "skipped", "removed")]
    if undone:
        one = undone[0]
        raise StateError(
            f"cannot resume run {run.id} from `{pattern}`: `{one.name}` comes before it and is `{one.state}`",
            hint="resume from an earlier task",
        )
    return tuple(sorted({task.key for task in tasks if task.name in names}))
