"""Make a folder or an archive of files the newest revision of a project."""

from __future__ import annotations

import re
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from headrace.archives.folders import RevisionFolders
from headrace.archives.packing import archive_digest, pack
from headrace.clock import Clock
from headrace.errors import LoadError, UsageError
from headrace.projects import ParsePool, find_files
from headrace.projects.pushing import Push, checked_files, save_push
from headrace.settings import Settings
from headrace.store import ProjectRow, Store, Transaction, find_project

_NAME = re.compile(r"[^/\x00-\x1f]{1,255}")


class Pushed(NamedTuple):
    project: ProjectRow
    workflows: list[str]
    warnings: list[str]


def pack_folder(settings: Settings, folder: Path, *, copies_outgoing_links: bool = False) -> bytes:
    """The archive of a project's folder, within the limits of the settings."""
    return pack(folder, copies_outgoing_links=copies_outgoing_links, max_bytes=settings.limits.max_archive_bytes)


def push(
    store: Store,
    clock: Clock,
    settings: Settings,
    project: str,
    revision: str,
    data: bytes,
    *,
    schedule_from: datetime | None = None,
    cleared_schedules: tuple[str, ...] | None = (),
) -> Pushed:
    """Load all workflows of an archive in child processes, then save everything in one transaction, or nothing.

    `cleared_schedules` names workflows whose schedules forget what they have started; None means all of them.
    """
    for what, name in (("project", project), ("revision", revision)):
        if _NAME.fullmatch(name) is None:
            raise UsageError(f"expected the name of a {what} of at most 255 characters without a slash, got: `{name}`")
    digest = archive_digest(data)
    folders = RevisionFolders(settings.revisions_dir, settings.limits.max_archive_bytes)
    # Where tasks of this machine will find it, if it is accepted.
    folder = folders.folder(digest, lambda: data)
    files = find_files(folder)
    if not files:
        raise LoadError(f"could not push project `{project}`: its files define no workflow", hint=_where_they_may_be())
    given = settings.parser
    with ParsePool(given.processes, timeout_seconds=given.timeout_seconds, memory_mb=given.memory_mb) as pool:
        parsed = checked_files(project, pool.parse(folder, files))
    request = Push(project, revision, digest, data, schedule_from, cleared_schedules)

    def work(tx: Transaction) -> Pushed:
        saved = save_push(tx, request, parsed, clock.now())
        warnings = [text for one in parsed for workflow in one.workflows for text in workflow.warnings]
        return Pushed(find_project(tx, project), saved.workflows, warnings)

    return store.transact(work)


def _where_they_may_be() -> str:
    return "`.dig` files count at the top of the folder, Python files anywhere below it"
