"""The `call>` operator: another file's tasks, grown here."""

from __future__ import annotations

from headrace.authoring.dig import read_called_workflow
from headrace.operators.dig.contract import Job, Outcome
from headrace.operators.dig.folders import inside_project


def run_call(job: Job) -> Outcome:
    """Grow the tasks of a file of the project. They work in the folder of that file."""
    name = job.params.text("_command")
    path = inside_project(job.root, job.folder / (name if name.endswith(".dig") else f"{name}.dig"), name)
    return Outcome(subtasks=read_called_workflow(job.root, path.relative_to(job.root).as_posix()))
