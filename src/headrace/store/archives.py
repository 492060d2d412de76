"""Pushed archives: the files of a project's revisions, kept in pieces that any database takes."""

from __future__ import annotations

from typing import Any, NamedTuple

from sqlalchemy import delete, func, insert, select, update

from headrace.errors import NotFoundError, StateError, did_you_mean
from headrace.store.database import Transaction
from headrace.store.projects import mark_gone
from headrace.store.schema import archive, archive_chunk, project, source_error, workflow
from headrace.store.served_folders import refuse_deletion

_CHUNK_BYTES = 1024 * 1024


class ArchiveRow(NamedTuple):
    """A pushed revision of a project."""

    id: int
    name: str
    digest: str
    size: int
    created_at: int


class ProjectRow(NamedTuple):
    """A project with its newest revision, if it is pushed."""

    id: int
    name: str
    root: str
    """Empty: it is pushed."""
    created_at: int
    revision: ArchiveRow | None


def add_archive(tx: Transaction, project_id: int, name: str, digest: str, data: bytes, now: int) -> int:
    """Keep an archive as a new revision of a project, whose row the caller has locked."""
    is_known = tx.execute(
        select(archive.c.id).where(archive.c.project_id == project_id, archive.c.name == name)
    ).first()
    if is_known is not None:
        raise StateError(f"the project already has a revision `{name}`", hint="push it under another name with `-r`")
    values = {"project_id": project_id, "name": name, "digest": digest, "size": len(data), "created_at": now}
    archive_id = int(tx.execute(insert(archive).values(values).returning(archive.c.id)).scalar_one())
    for number, start in enumerate(range(0, len(data), _CHUNK_BYTES)):
        content = data[start : start + _CHUNK_BYTES]
        tx.execute(insert(archive_chunk).values(archive_id=archive_id, number=number, content=content))
    return archive_id


def archive_content(tx: Transaction, digest: str) -> bytes | None:
    """The bytes of an archive, whichever revision they belong to."""
    found = tx.execute(select(func.min(archive.c.id)).where(archive.c.digest == digest)).scalar()
    if found is None:
        return None
    chunks = tx.execute(
        select(archive_chunk.c.content).where(archive_chunk.c.archive_id == found).order_by(archive_chunk.c.number)
    )
    return b"".join(bytes(row.content) for row in chunks)


def list_archives(tx: Transaction, project_id: int, limit: int = 50) -> list[ArchiveRow]:
    """The pushed revisions of a project, newest first."""
    rows = tx.execute(
        select(archive).where(archive.c.project_id == project_id).order_by(archive.c.id.desc()).limit(limit)
    )
    return [_archive(row) for row in rows]


def find_archive(tx: Transaction, owner: ProjectRow, name: str | None) -> ArchiveRow:
    """A pushed revision of a project by its name; without one, the newest."""
    if name is None and owner.revision is not None:
        return owner.revision
    found = tx.execute(select(archive).where(archive.c.project_id == owner.id, archive.c.name == name)).first()
    if found is None:
        known = [one.name for one in list_archives(tx, owner.id, 1000)]
        what = f"has no revision `{name}`" if name is not None else "was never pushed: its files are in its folder"
        hint = did_you_mean(name or "", known) or (f"its newest is `{known[0]}`" if known else None)
        raise NotFoundError(f"project `{owner.name}` {what}", hint=hint)
    return _archive(found)


def list_projects(tx: Transaction) -> list[ProjectRow]:
    """The projects that are not deleted, by id."""
    rows = tx.execute(select(project).where(project.c.deleted_at.is_(None)).order_by(project.c.id))
    return [_project(tx, row) for row in rows]


def find_project(tx: Transaction, name: str) -> ProjectRow:
    """A project by its name, or by its id where no project is called like that."""
    wanted = project.c.name == name
    row = tx.execute(select(project).where(wanted, project.c.deleted_at.is_(None))).first()
    if row is None and name.isdigit() and len(name) < 19:
        row = tx.execute(select(project).where(project.c.id == int(name), project.c.deleted_at.is_(None))).first()
    if row is None:
        names = [one.name for one in tx.execute(select(project.c.name).where(project.c.deleted_at.is_(None)))]
        hint = did_you_mean(name, names) or ("`headrace projects` lists them" if names else "the store has no projects")
        raise NotFoundError(f"there is no project `{name}`", hint=hint)
    return _project(tx, row)


def delete_project(tx: Transaction, project_id: int, now: int) -> None:
    """Free a project's name and start no more runs of it. What runs goes on, and its history stays.

    Raises StateError if a living process serves its folder.
    """
    free = update(project).where(project.c.id == project_id).values(deleted_at=now)
    deleted = tx.execute(free.returning(project.c.name, project.c.root)).one()
    # The row is locked: a server that announces its folder only now makes a new project of it.
    refuse_deletion(tx, deleted.name, deleted.root, now)
    rows = tx.execute(select(workflow.c.id).where(workflow.c.project_id == project_id))
    mark_gone(tx, [row.id for row in rows])
    tx.execute(delete(source_error).where(source_error.c.project_id == project_id))


def _project(tx: Transaction, row: Any) -> ProjectRow:
    newest = list_archives(tx, row.id, 1)
    return ProjectRow(row.id, row.name, row.root, row.created_at, newest[0] if newest else None)


def _archive(row: Any) -> ArchiveRow:
    return ArchiveRow(row.id, row.name, row.digest, row.size, row.created_at)
