"""Compiled workflows by version, decoded once per process: versions never change."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable
from typing import NamedTuple

from headrace.definition import Node, Workflow, node_from_json, workflow_from_json
from headrace.errors import NotFoundError
from headrace.state import PastRules, Task, source_keys
from headrace.store.database import Transaction
from headrace.store.sql import Sql

LOAD_VERSIONS = Sql(
    """
    SELECT workflow_version.id, workflow_version.definition, revision.file, revision.digest, project.root,
           project.name, project.id, archive.digest
    FROM workflow_version
    JOIN revision ON revision.id = workflow_version.revision_id
    LEFT JOIN archive ON archive.id = revision.archive_id
    JOIN project ON project.id = revision.project_id
    WHERE workflow_version.id IN :ids[]
    """
)


class Version(NamedTuple):
    """A workflow as one revision defines it, with where its code is."""

    workflow: Workflow
    nodes: dict[str, Node]
    mapped_over: frozenset[str]
    """Keys of tasks from whose results a mapped task takes its length."""
    file: str
    revision_digest: str
    project_root: str
    project_name: str
    project_id: int
    past: PastRules | None
    """None: no node looks at the run before."""
    archive_digest: str
    """Of the pushed archive with its code; empty if the code is in the project's root."""


class Definitions:
    """A bounded cache of versions."""

    def __init__(self, limit: int = 256) -> None:
        self._limit = limit
        self._lock = threading.Lock()
        self._versions: OrderedDict[int, Version] = OrderedDict()

    def version(self, tx: Transaction, version_id: int) -> Version:
        with self._lock:
            known = self._versions.get(version_id)
            if known is not None:
                self._versions.move_to_end(version_id)
                return known
        found = self.load(tx, [version_id]).get(version_id)
        if found is None:
            raise NotFoundError(f"workflow version {version_id} is not in the store")
        return found

    def load(self, tx: Transaction, version_ids: Iterable[int]) -> dict[int, Version]:
        """Have versions at hand that are wanted soon: one statement for all that are not. Returns the new ones."""
        missing = sorted(set(version_ids) - self._versions.keys())
        rows = tx.run(LOAD_VERSIONS, {"ids": missing}) if missing else []
        loaded = {row[0]: _decoded(*row[1:]) for row in rows}
        with self._lock:
            self._versions.update(loaded)
            while len(self._versions) > self._limit:
                self._versions.popitem(last=False)
        return loaded

    def forget(self) -> None:
        """For whoever replaces the whole database under its URL."""
        self._versions.clear()

    def node(self, tx: Transaction, version_id: int, task: Task) -> Node:
        """What a task's definition says, whether it was there from the start or grew."""
        if task.body is not None:
            return node_from_json(task.body)
        return self.version(tx, version_id).nodes[task.key]


def _decoded(
    definition: str, file: str, digest: str, root: str, project: str, project_id: int, archive_digest: str | None
) -> Version:
    workflow = workflow_from_json(definition)
    return Version(
        workflow=workflow,
        nodes={node.key: node for node in workflow.nodes},
        mapped_over=frozenset(key for node in workflow.nodes if node.expand for key in source_keys(node.expand)),
        file=file,
        revision_digest=digest,
        project_root=root,
        project_name=project,
        project_id=project_id,
        past=PastRules(workflow) if any(node.past is not None for node in workflow.nodes) else None,
        archive_digest=archive_digest or "",
    )
