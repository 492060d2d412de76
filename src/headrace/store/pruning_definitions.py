"""Forgetting what files once said: versions, revisions and archives that nothing refers to any more.

The present version of a workflow stays, the newest revision of a file (which tells whether the file has changed) and
the newest archive of a project. Everything else stays as long as there is a run of it.
"""

from __future__ import annotations

from headrace.store.database import Transaction
from headrace.store.sql import Sql

PROJECTS = Sql("SELECT id FROM project ORDER BY id")
# Whoever saves files holds the project's row as well, so nothing becomes or ceases to be the newest meanwhile.
LOCK_PROJECT = Sql("SELECT id FROM project WHERE id = :project_id [[postgres: FOR NO KEY UPDATE]]")
_UNUSED = "NOT EXISTS (SELECT 1 FROM attempt WHERE attempt.workflow_version_id = workflow_version.id)"
OLD_VERSIONS = Sql(
    f"""
    SELECT workflow_version.id FROM workflow JOIN workflow_version ON workflow_version.workflow_id = workflow.id
    WHERE workflow.project_id = :project_id AND workflow_version.id <> coalesce(workflow.current_version_id, 0)
      AND workflow_version.created_at < :before AND {_UNUSED}
    ORDER BY workflow_version.id LIMIT :limit [[postgres: FOR UPDATE OF workflow_version]]
    """
)
# Asked again, now that the rows are locked: an attempt may have begun to use one while they were looked for.
DELETE_VERSIONS = Sql(f"DELETE FROM workflow_version WHERE id IN :ids[] AND {_UNUSED}")
DELETE_REVISIONS = Sql(
    """
    DELETE FROM revision WHERE id IN (
      SELECT old.id FROM revision AS old
      WHERE old.project_id = :project_id AND old.created_at < :before
        AND NOT EXISTS (SELECT 1 FROM workflow_version WHERE workflow_version.revision_id = old.id)
        AND EXISTS (SELECT 1 FROM revision AS newer
                    WHERE newer.project_id = old.project_id AND newer.file = old.file AND newer.id > old.id)
      ORDER BY old.id LIMIT :limit
    )
    """
)
DELETE_ARCHIVES = Sql(
    """
    DELETE FROM archive WHERE id IN (
      SELECT old.id FROM archive AS old
      WHERE old.project_id = :project_id AND old.created_at < :before
        AND NOT EXISTS (SELECT 1 FROM revision WHERE revision.archive_id = old.id)
        AND EXISTS (SELECT 1 FROM archive AS newer WHERE newer.project_id = old.project_id AND newer.id > old.id)
      ORDER BY old.id LIMIT :limit
    )
    """
)


def project_ids(tx: Transaction) -> list[int]:
    """Every project that there ever was."""
    return [row[0] for row in tx.run(PROJECTS)]


def forget_definitions(tx: Transaction, project_id: int, before: int, limit: int) -> int:
    """Delete what a project's files said before an instant and nothing needs. Returns how many things that were."""
    tx.run(LOCK_PROJECT, {"project_id": project_id})
    old = {"project_id": project_id, "before": before, "limit": limit}
    versions = [row[0] for row in tx.run(OLD_VERSIONS, old)]
    deleted = tx.change(DELETE_VERSIONS, {"ids": versions}) if versions else 0
    return deleted + tx.change(DELETE_REVISIONS, old) + tx.change(DELETE_ARCHIVES, old)
