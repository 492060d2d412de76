"""The `call>` operator: another file's tasks, grown here."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

from headrace.authoring.dig import read_called_workflow
from headrace.errors import did_you_mean
from headrace.operators.dig.contract import Job, OperatorError, Outcome
from headrace.operators.dig.folders import inside_project

_MOST_FILES = 1000
"""So many files are looked at for a name to suggest."""


def run_call(job: Job) -> Outcome:
    """Grow the tasks of a file of the project. They work in the folder of that file."""
    name = job.params.text("_command")
    file = name if name.endswith(".dig") else f"{name}.dig"
    path = inside_project(job.root, job.folder / file, name)
    if not path.is_file():
        raise OperatorError(f"there is no file `{file}` to call", hint=did_you_mean(file, _files(job.folder)))
    return Outcome(subtasks=read_called_workflow(job.root, path.relative_to(job.root).as_posix()))


def _files(folder: Path) -> list[str]:
    return [path.relative_to(folder).as_posix() for path in islice(folder.rglob("*.dig"), _MOST_FILES)]
