"""From what a person typed to the workflow, run or task that was meant."""

from __future__ import annotations

import re

from headrace.errors import NotFoundError, UsageError, did_you_mean
from headrace.store import (
    BackfillRow,
    RunRow,
    TaskRow,
    Transaction,
    WorkflowRow,
    find_project,
    get_attempt,
    get_backfill,
    get_run,
    list_runs,
    list_workflows,
    task_keys,
    tasks_with_key,
    workflow_names,
    workflow_of_project,
    workflows_named,
)

LATEST = "latest"
_NO_WORKFLOWS = (
    "the store has no workflows: `headrace standalone FOLDER` or `headrace scheduler --projects NAME=PATH` saves"
    " those of a folder for as long as it runs, `headrace push PROJECT` once"
)
_ATTEMPT = re.compile(r"(?P<run>\d{1,18})\.(?P<number>\d{1,9})")
_INSTANCE = re.compile(r"(?P<key>.+)\[(?P<index>\d+)\]", re.DOTALL)


def find_workflow(tx: Transaction, name: str, *, may_be_gone: bool = False) -> WorkflowRow:
    """A workflow by `NAME` or, where several projects have one of that name, `PROJECT/NAME`."""
    found = workflows_named(tx, name)
    if not found and "/" in name:
        project, _, rest = name.partition("/")
        found = [row for row in workflows_named(tx, rest) if row.project == project]
    present = [row for row in found if not row.is_gone]
    if not found or (not present and not may_be_gone):
        raise _missing_workflow(tx, name, was_there=bool(found))
    projects = list(dict.fromkeys(row.project for row in present or found))
    if len(projects) > 1:
        names = ", ".join(f"`{project}`" for project in projects)
        raise UsageError(
            f"workflow `{name}` {'exists' if present else 'was'} in several projects: {names}",
            hint=f"name it as `{projects[0]}/{name}`",
        )
    # The newest, where a project was deleted and pushed again.
    return (present or found)[-1]


def find_backfill(tx: Transaction, backfill_id: int) -> BackfillRow:
    """A backfill by its id."""
    row = get_backfill(tx, backfill_id)
    if row is None:
        raise NotFoundError(f"there is no backfill {backfill_id}", hint="`headrace backfill list` lists them")
    return row


def find_run(tx: Transaction, name: str) -> RunRow:
    """A run by its id, as `latest`, or by a workflow's name: then it is the workflow's newest.

    `12.1` is run 12 as its first attempt left it.
    """
    attempt = _ATTEMPT.fullmatch(name)
    if attempt is not None:
        return _find_attempt(tx, int(attempt["run"]), int(attempt["number"]))
    if name.isdigit():
        run = get_run(tx, int(name)) if len(name) < 19 else None
        if run is None:
            raise NotFoundError(f"there is no run {name}", hint="`headrace runs` lists them")
        return run
    if name == LATEST:
        runs = list_runs(tx, limit=1)
    else:
        runs = list_runs(tx, find_workflow(tx, name, may_be_gone=True).id, limit=1)
    if not runs:
        raise NotFoundError("there is no run yet" if name == LATEST else f"workflow `{name}` has no run yet")
    return runs[0]


def _find_attempt(tx: Transaction, run_id: int, number: int) -> RunRow:
    run, row = get_run(tx, run_id), get_attempt(tx, run_id, number)
    if run is None or row is None:
        hint = "`headrace runs` lists the runs" if run is None else f"`headrace attempts {run_id}` lists them"
        raise NotFoundError(f"there is no attempt {run_id}.{number}", hint=hint)
    return run._replace(
        attempt_id=row.id,
        attempt_number=row.number,
        state=row.state,
        reason=row.reason,
        started_at=row.started_at,
        ended_at=row.ended_at,
        is_cancel_requested=row.is_cancel_requested,
    )


def find_workflow_of(tx: Transaction, project: str, name: str, *, may_be_gone: bool = False) -> WorkflowRow:
    """A workflow of one project."""
    owner = find_project(tx, project)
    found = workflow_of_project(tx, owner.id, name)
    if found is None:
        names = [row.name for row in list_workflows(tx, limit=10_000, project_id=owner.id)]
        hint = did_you_mean(name, names) or f"`headrace workflows {owner.name}` lists them"
        raise NotFoundError(f"project `{owner.name}` has no workflow `{name}`", hint=hint)
    if found.is_gone and not may_be_gone:
        raise NotFoundError(
            f"project `{owner.name}` has no workflow `{name}` any more",
            hint=f"`headrace sessions {owner.name} {name}` lists its runs",
        )
    return found


def find_task(tx: Transaction, run: RunRow, name: str) -> TaskRow:
    """A task of a run's newest attempt by its key, with `[n]` for an instance; the end of a key is enough if unique."""
    instance = _INSTANCE.fullmatch(name)
    key = instance["key"] if instance else name
    rows = tasks_with_key(tx, run.attempt_id, key)
    if not rows:
        keys = task_keys(tx, run.attempt_id)
        endings = [one for one in keys if one.endswith((f".{key}", key if key.startswith("+") else f"+{key}"))]
        if len(endings) != 1:
            hint = did_you_mean(name, keys) or f"`headrace tasks {run.id}` lists them"
            raise NotFoundError(f"run {run.id} of `{run.workflow}` has no task `{name}`", hint=hint)
        rows = tasks_with_key(tx, run.attempt_id, endings[0])
    index = int(instance["index"]) if instance else -1
    for row in rows:
        if row.map_index == index:
            return row
    last = max(row.map_index for row in rows)
    hint = f"its instances are `{key}[0]` to `{key}[{last}]`" if last >= 0 else f"`{key}` is not mapped"
    raise NotFoundError(f"run {run.id} of `{run.workflow}` has no task `{name}`", hint=hint)


def _missing_workflow(tx: Transaction, name: str, *, was_there: bool) -> NotFoundError:
    if was_there:
        return NotFoundError(f"workflow `{name}` is gone: no file defines it any more")
    names = workflow_names(tx)
    hint = did_you_mean(name, names) or ("`headrace workflows` lists them" if names else _NO_WORKFLOWS)
    return NotFoundError(f"there is no workflow `{name}`", hint=hint)
