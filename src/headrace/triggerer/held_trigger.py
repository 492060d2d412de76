"""A trigger that a triggerer runs, with the log of the task that waits for it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import msgspec

from headrace.definition import Node
from headrace.executor.shown import shown_error
from headrace.handoff import Fired, RunContext, RunTrigger, Source, TaskRequest
from headrace.logs import LogFile, Masker, log_path
from headrace.store import ClaimedTrigger, RunInfo, Version

NOBODY = TaskRequest(
    task_id=0,
    fence=0,
    key="",
    node=Node(key=""),
    source=Source(root="", file="", language=""),
    run=RunContext(project="", workflow=""),
)
"""Stands for the task in questions of code that belongs to no trigger."""


@dataclass
class HeldTrigger:
    order: RunTrigger
    log: LogFile
    is_stopping: bool = False
    """It has fired or was told to stop; whatever it says now does not count."""
    is_given_up: bool = False
    successor: HeldTrigger | None = None
    """The same trigger, claimed again before this one had stopped."""

    def write(self, text: str) -> None:
        """Append to the task's log. The file is not kept open: a thousand would be too many."""
        self.log.write(text.encode(errors="backslashreplace"))
        self.log.close()

    def without_secrets(self, fired: Fired) -> Fired:
        """What it has to tell, with an error as people may see it. The event itself is for the task."""
        if fired.error is None:
            return fired
        return msgspec.structs.replace(fired, error=shown_error(fired.error, self.log.masker))


def held_trigger(claimed: ClaimedTrigger, run: RunInfo, logs_root: Path, masker: Masker) -> HeldTrigger:
    """What the process of triggers is to be told, and where its lines go."""
    context = run.context
    path = log_path(
        logs_root,
        context.workflow,
        context.run_key,
        claimed.key,
        claimed.map_index,
        context.attempt_number,
        claimed.try_number,
        project=context.project,
    )
    request = TaskRequest(
        task_id=claimed.task_id,
        fence=claimed.fence,
        key=claimed.key,
        map_index=claimed.map_index,
        try_number=claimed.try_number,
        node=Node(key=claimed.key),
        source=run.source,
        run=context,
    )
    order = RunTrigger(
        id=claimed.id,
        path=claimed.path,
        arguments=claimed.arguments,
        request=request,
        is_given_up=claimed.is_given_up,
    )
    return HeldTrigger(order, LogFile(str(path), masker))


def held_watcher(claimed: ClaimedTrigger, workflow: Version, logs_root: Path, masker: Masker) -> HeldTrigger:
    """The same for one that watches an asset; its log lies beside those of the workflow's runs."""
    names = workflow.project_name, workflow.workflow.name
    path = log_path(logs_root, names[1], "watchers", claimed.asset, project=names[0])
    source = Source(root=workflow.project_root, file=workflow.file, language=workflow.workflow.language)
    request = msgspec.structs.replace(NOBODY, source=source, run=RunContext(project=names[0], workflow=names[1]))
    order = RunTrigger(
        id=claimed.id, path=claimed.path, arguments=claimed.arguments, request=request, asset=claimed.asset
    )
    return HeldTrigger(order, LogFile(str(path), masker))
