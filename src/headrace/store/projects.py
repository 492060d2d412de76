"""Projects, revisions and workflows: what the files say, saved only where it changed."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Any, NamedTuple

from sqlalchemy import delete, func, insert, select, update

from headrace.definition import Workflow, digest, to_json
from headrace.errors import DefinitionError, StateError
from headrace.handoff import KEPT_BYTES
from headrace.store.database import Transaction
from headrace.store.schema import project, revision, schedule, source_error, workflow, workflow_version
from headrace.store.served_folders import refuse_other_folder
from headrace.store.sql import Sql

ENSURE_PROJECT = Sql(
    """
    INSERT INTO project (name, root, created_at) VALUES (:name, :root, :now)
    ON CONFLICT (name) WHERE deleted_at IS NULL DO UPDATE SET root = project.root RETURNING id, root
    """
)
MOVE_PROJECT = Sql("UPDATE project SET root = :root WHERE id = :id")

GONE = ""
"""The digest of the revision that says that a file is gone, so that it is new when it comes back."""


class SavedWorkflow(NamedTuple):
    """A workflow after its file was saved."""

    id: int
    name: str
    is_new: bool
    is_changed: bool
    """Its definition differs from the one before, or it is new."""


class FileError(NamedTuple):
    """Why a file could not be loaded."""

    message: str
    line: int | None = None
    hint: str | None = None
    detail: str | None = None


def ensure_project(tx: Transaction, name: str, root: str, now: int, *, may_move: bool = True) -> int:
    """The id of a project, which is created if it is not there. The project's row is locked until the commit.

    A project without a root is one that is pushed. One whose folder is another now moves there, unless a living process
    serves it where it is: then this is a StateError. `may_move` is False for those who know what is saved of the
    folder: after a move that may be something else.
    """
    ((project_id, stored),) = tx.run(ENSURE_PROJECT, {"name": name, "root": root, "now": now})
    if stored != root:
        # The row is locked: of two who come at the same time, the second one sees what the first one did.
        refuse_other_folder(tx, name, stored, root, now)
        if not may_move:
            raise StateError(f"project `{name}` was saved from `{stored}` meanwhile, and not from `{root}`")
        tx.change(MOVE_PROJECT, {"id": project_id, "root": root})
    return int(project_id)


def save_file(
    tx: Transaction,
    project_id: int,
    file: str,
    file_digest: str,
    workflows: Sequence[Workflow],
    now: int,
    content: bytes | None = None,
    archive_id: int | None = None,
) -> list[SavedWorkflow]:
    """Save what a file defines: a new revision if its bytes changed, new versions of the workflows that changed.

    `content` is kept with the revision, so that its runs can go on when the file is another one. A file of an archive
    is kept there, with everything around it; each archive is a new revision of all its files.
    """
    known = {row.name: row for row in _known_workflows(tx, project_id, file, [one.name for one in workflows])}
    for one in workflows:
        _refuse_second_definition(known.get(one.name), one.name, file)
    revision_id, is_new_revision = _save_revision(tx, project_id, file, file_digest, now, content, archive_id)
    saved = [_save_workflow(tx, project_id, file, revision_id, is_new_revision, one, known, now) for one in workflows]
    names = {one.name for one in workflows}
    gone = [row.id for row in known.values() if row.file == file and row.name not in names and not row.is_gone]
    mark_gone(tx, gone)
    tx.execute(delete(source_error).where(source_error.c.project_id == project_id, source_error.c.file == file))
    return saved


def save_error(tx: Transaction, project_id: int, file: str, error: FileError, now: int) -> None:
    """Remember why a file could not be loaded. The last good revision of its workflows stays in force."""
    tx.execute(delete(source_error).where(source_error.c.project_id == project_id, source_error.c.file == file))
    tx.execute(insert(source_error).values(project_id=project_id, file=file, at=now, **error._asdict()))


def remove_file(tx: Transaction, project_id: int, file: str) -> None:
    """The file is gone: its workflows start no more runs; their history stays."""
    rows = tx.execute(select(workflow.c.id).where(workflow.c.project_id == project_id, workflow.c.file == file))
    mark_gone(tx, [row.id for row in rows])
    tx.execute(delete(source_error).where(source_error.c.project_id == project_id, source_error.c.file == file))
    newest = _newest_revision(tx, project_id, file)
    if newest is not None and newest.digest != GONE:
        values = {"project_id": project_id, "file": file, "digest": GONE, "created_at": newest.created_at}
        tx.execute(insert(revision).values(values))


def mark_gone(tx: Transaction, workflow_ids: Sequence[int]) -> None:
    if workflow_ids:
        tx.execute(update(workflow).where(workflow.c.id.in_(workflow_ids)).values(is_gone=True))
        tx.execute(delete(schedule).where(schedule.c.workflow_id.in_(workflow_ids)))


def file_digests(tx: Transaction, project_id: int) -> dict[str, str]:
    """The digest of each file's newest revision, without files that are gone."""
    newest = select(func.max(revision.c.id)).where(revision.c.project_id == project_id).group_by(revision.c.file)
    rows = tx.execute(select(revision.c.file, revision.c.digest).where(revision.c.id.in_(newest)))
    return {row.file: row.digest for row in rows if row.digest != GONE}


def files_of_project(tx: Transaction, project_id: int) -> set[str]:
    """The files that define a project's present workflows."""
    rows = tx.execute(select(workflow.c.file).where(workflow.c.project_id == project_id, ~workflow.c.is_gone))
    return {row.file for row in rows}


def workflows_in_force(tx: Transaction, project_name: str) -> set[str]:
    """The names of a project's present workflows."""
    rows = tx.execute(
        select(workflow.c.name)
        .join(project, project.c.id == workflow.c.project_id)
        .where(project.c.name == project_name, project.c.deleted_at.is_(None), ~workflow.c.is_gone)
    )
    return {row.name for row in rows}


def revision_content(tx: Transaction, root: str, file: str, file_digest: str) -> bytes | None:
    """The bytes of a revision of a file below a project's root, if they were kept."""
    found = tx.execute(
        select(revision.c.content)
        .join(project, project.c.id == revision.c.project_id)
        .where(project.c.root == root, revision.c.file == file, revision.c.digest == file_digest)
        .where(revision.c.content.is_not(None))
        .limit(1)
    ).scalar()
    return None if found is None else zlib.decompress(found)


def failed_files(tx: Transaction, project_id: int) -> set[str]:
    """The files that could not be loaded when they were last seen."""
    rows = tx.execute(select(source_error.c.file).where(source_error.c.project_id == project_id))
    return {row.file for row in rows}


def _known_workflows(tx: Transaction, project_id: int, file: str, names: Sequence[str]) -> list[Any]:
    statement = (
        select(
            workflow.c.id,
            workflow.c.name,
            workflow.c.file,
            workflow.c.is_gone,
            workflow_version.c.digest,
            workflow_version.c.id.label("version_id"),
        )
        .join(workflow_version, workflow_version.c.id == workflow.c.current_version_id)
        .where(workflow.c.project_id == project_id, (workflow.c.file == file) | workflow.c.name.in_(names))
    )
    return list(tx.execute(statement))


def _refuse_second_definition(known: Any, name: str, file: str) -> None:
    if known is not None and known.file != file and not known.is_gone:
        raise DefinitionError(defined_twice(name, known.file, file), file=file)


def defined_twice(name: str, first: str, second: str) -> str:
    """The sentence for a workflow that two files of a project define."""
    return f"workflow `{name}` is defined twice: in `{first}` and in `{second}`"


def _newest_revision(tx: Transaction, project_id: int, file: str) -> Any:
    return tx.execute(
        select(revision.c.id, revision.c.digest, revision.c.created_at, revision.c.content.is_(None).label("is_bare"))
        .where(revision.c.project_id == project_id, revision.c.file == file)
        .order_by(revision.c.id.desc())
        .limit(1)
    ).first()


def _save_revision(
    tx: Transaction,
    project_id: int,
    file: str,
    file_digest: str,
    now: int,
    content: bytes | None,
    archive_id: int | None,
) -> tuple[int, bool]:
    kept = None if content is None or len(content) > KEPT_BYTES else zlib.compress(content)
    newest = _newest_revision(tx, project_id, file) if archive_id is None else None
    if newest is not None and newest.digest == file_digest:
        if newest.is_bare and kept is not None:
            tx.execute(update(revision).where(revision.c.id == newest.id).values(content=kept))
        return int(newest.id), False
    values = {
        "project_id": project_id,
        "file": file,
        "digest": file_digest,
        "content": kept,
        "archive_id": archive_id,
        "created_at": now,
    }
    return int(tx.execute(insert(revision).values(values).returning(revision.c.id)).scalar_one()), True


def _save_workflow(
    tx: Transaction,
    project_id: int,
    file: str,
    revision_id: int,
    is_new_revision: bool,
    definition: Workflow,
    known: dict[str, Any],
    now: int,
) -> SavedWorkflow:
    row = known.get(definition.name)
    definition_digest = digest(definition)
    is_changed = row is None or row.digest != definition_digest
    if row is not None and not is_changed and not is_new_revision and not row.is_gone:
        return SavedWorkflow(row.id, definition.name, is_new=False, is_changed=False)
    workflow_id = row.id if row is not None else _insert_workflow(tx, project_id, file, definition, now)
    version_id = row.version_id if row is not None else None
    if is_changed or is_new_revision:
        version_id = _insert_version(tx, workflow_id, revision_id, definition, definition_digest, now)
    tx.execute(
        update(workflow)
        .where(workflow.c.id == workflow_id)
        .values(current_version_id=version_id, file=file, is_gone=False)
    )
    return SavedWorkflow(workflow_id, definition.name, is_new=row is None or row.is_gone, is_changed=is_changed)


def _insert_workflow(tx: Transaction, project_id: int, file: str, definition: Workflow, now: int) -> int:
    values = {
        "project_id": project_id,
        "name": definition.name,
        "file": file,
        "is_paused": definition.is_paused_at_creation,
        "is_gone": False,
        "created_at": now,
    }
    return int(tx.execute(insert(workflow).values(values).returning(workflow.c.id)).scalar_one())


def _insert_version(
    tx: Transaction, workflow_id: int, revision_id: int, definition: Workflow, definition_digest: str, now: int
) -> int:
    values = {
        "workflow_id": workflow_id,
        "revision_id": revision_id,
        "digest": definition_digest,
        "definition": to_json(definition).decode(),
        "created_at": now,
    }
    return int(tx.execute(insert(workflow_version).values(values).returning(workflow_version.c.id)).scalar_one())
