"""`headrace tasks`."""

from __future__ import annotations

from collections.abc import Mapping

import click

from headrace.actions.finding import find_run
from headrace.actions.wording import error_line, span
from headrace.actions.wording import instant as shown
from headrace.cli.opening import opened
from headrace.cli.options import json_option, store_option
from headrace.cli.printing import print_json, print_table
from headrace.cli.question_json import describe_question
from headrace.cli.task_json import describe_tasks
from headrace.store import Definitions, TaskRow, instance_labels, list_questions, list_tasks, version_of_attempt


@click.command("tasks")
@click.argument("run")
@json_option
@store_option
def command(run: str, as_json: bool, url: str | None) -> None:
    """List the tasks of RUN: an id, `latest`, or a workflow's name for its newest run."""
    with opened(url, may_be_private=True) as here, here.store.read() as tx:
        found = find_run(tx, run)
        rows = [task for task in list_tasks(tx, found.attempt_id) if task.is_listed]
        version = tx.shared(Definitions).version(tx, version_of_attempt(tx, found.attempt_id))
        labels = instance_labels(tx, found.attempt_id)
        asked = {row.task_id: row for row in list_questions(tx, found.attempt_id, limit=10_000)}
    if as_json:
        described = describe_tasks(rows, version.nodes, labels)
        for row in rows:
            described[row.name] |= {"question": describe_question(asked[row.id])} if row.id in asked else {}
        print_json({"run_id": found.id, "workflow": found.workflow, "tasks": described})
        return
    executors = [version.nodes[row.key].executor if row.key in version.nodes else "" for row in rows]
    questions = [asked[row.id].question.subject.strip() if row.id in asked else "" for row in rows]
    cells = [_cells(row, labels) for row in rows]
    columns = ["task", "state", "tries", "started", "took", "error"]
    # Most tasks leave the one to the agent and do without the other, so that a column of it would be empty.
    for name, column in (("executor", executors), ("asks", questions)):
        if any(column):
            columns.insert(-1, name)
            cells = [(*before, cell, error) for (*before, error), cell in zip(cells, column, strict=True)]
    print_table(columns, cells)


def _cells(row: TaskRow, labels: Mapping[int, str]) -> tuple[object, ...]:
    name = f"{row.name} {labels[row.id]}" if row.id in labels else row.name
    started = shown(row.started_at) if row.started_at is not None else ""
    error = error_line(row) if row.error is not None else ""
    return name, row.state, row.begun_tries or "", started, span(row.started_at, row.ended_at), error
