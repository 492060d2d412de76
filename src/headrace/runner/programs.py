"""Which function runs the tasks of which language. Named, not imported: a process pays only for what it uses."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

from headrace.authoring import LoadedFile, load_file
from headrace.errors import LoadError, did_you_mean
from headrace.handoff import Channel, TaskRequest, TaskResult
from headrace.runner.trying import run_guarded

RUNNERS = {
    "python": "headrace.runner.python_task:run_python_task",
    "dig": "headrace.runner.dig_task:run_dig_task",
}

ERRAND_RUNNERS = {"python": "headrace.runner.python_errand:run_python_errand"}
"""What does errands instead of tasks; a language without an entry has none."""
PREPARATIONS = {
    "python": "headrace.runner.python_task:prepare",
    "dig": "headrace.runner.dig_task:prepare",
}
"""What a warm parent does with the loaded file before it has children."""

REHEARSALS = {
    "python": "headrace.runner.python_task:rehearsal",
    "dig": "headrace.runner.dig_task:rehearsal",
}
"""What makes tries that do nothing, for a loaded file: the runner with a file and requests of its own."""

TaskRunner = Callable[[Any, TaskRequest, Channel], TaskResult]
"""Called with the loaded file (each language's own kind), the request and the line to the supervisor."""


def task_runner(language: str) -> TaskRunner:
    """The task runner of a language, imported now."""
    if language not in RUNNERS:
        raise LoadError(f"no task runner for the language `{language}`", hint=did_you_mean(language, RUNNERS))
    runner: TaskRunner = named(RUNNERS[language])

    def run(file: Any, request: TaskRequest, channel: Channel) -> TaskResult:
        return (runner if request.errand is None else _errand_runner(language))(file, request, channel)

    return run


def _errand_runner(language: str) -> TaskRunner:
    if language not in ERRAND_RUNNERS:
        raise LoadError(f"the language `{language}` knows no errands")
    runner: TaskRunner = named(ERRAND_RUNNERS[language])
    return runner


def prepare(language: str, file: Any) -> None:
    """Make this process a good parent for tries of a loaded file."""
    if language in PREPARATIONS:
        named(PREPARATIONS[language])(file)


def rehearsal_of(language: str, file: Any) -> tuple[TaskRunner, Any, *tuple[TaskRequest, ...]] | None:
    """Runner, file and requests of tries that do nothing; None if the language has none."""
    if language not in REHEARSALS:
        return None
    made: tuple[TaskRunner, Any, *tuple[TaskRequest, ...]] = named(REHEARSALS[language])(file)
    return made


def named(path: str) -> Any:
    """What `module:function` names."""
    module_name, attribute = path.split(":")
    return getattr(importlib.import_module(module_name), attribute)


def run_task(request: TaskRequest, channel: Channel) -> TaskResult:
    """Load the task's file in this process, once per revision, and run the task. Never raises for user code."""
    source = request.source

    def load_and_run(_: None, request: TaskRequest, channel: Channel) -> TaskResult:
        loaded = _load(source.root, source.file, source.revision)
        return task_runner(source.language)(loaded, request, channel)

    return run_guarded(load_and_run, None, request, channel)


@lru_cache(maxsize=32)
def _load(root: str, file: str, revision: str) -> LoadedFile:
    return load_file(Path(root), file)
