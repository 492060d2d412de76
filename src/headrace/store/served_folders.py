"""Which folders living processes save as which projects. A project is saved from one folder at a time."""

from __future__ import annotations

from typing import NamedTuple

import msgspec
from sqlalchemy import select

from headrace.errors import StateError
from headrace.store.database import Transaction
from headrace.store.schema import project
from headrace.store.sql import Sql

SERVERS = Sql(
    """
    SELECT name, place, pid, started_at, projects FROM agent
    WHERE NOT is_lost AND lease_until >= :now AND projects <> '{}' ORDER BY id
    """
)


class ServedFolder(NamedTuple):
    """A folder that a living process saves, or would save, as a project."""

    project: str
    root: str
    process: str
    host: str
    pid: int
    since: int


class UnsavedFolder(NamedTuple):
    """A folder that a living process cannot save, because its project is something else."""

    folder: ServedFolder
    error: StateError


def served_folders(tx: Transaction, now: int) -> list[ServedFolder]:
    """What the processes that have a lease say that they serve, whoever was there first in front."""
    return [
        ServedFolder(name, root, process, place.partition("/")[0], pid, since)
        for process, place, pid, since, projects in tx.run(SERVERS, {"now": now})
        for name, root in msgspec.json.decode(projects, type=dict[str, str]).items()
    ]


def project_roots(tx: Transaction) -> dict[str, str]:
    """The names of all projects, with the folders that they are saved from."""
    rows = tx.execute(select(project.c.name, project.c.root).where(project.c.deleted_at.is_(None)))
    return {row.name: row.root for row in rows}


def refuse_other_folder(tx: Transaction, name: str, stored: str, root: str, now: int) -> None:
    """Raise StateError if a project that is saved from one folder must not be saved from another one now.

    A folder that nobody alive serves may have been moved, and its project moves along.
    """
    error = _refusal(name, stored, root, served_folders(tx, now))
    if error is not None:
        raise error


def refuse_deletion(tx: Transaction, name: str, stored: str, now: int) -> None:
    """Raise StateError if a living process saves the project from its folder: it would soon be there again."""
    server = _server_of(name, stored, served_folders(tx, now))
    if server is not None:
        raise StateError(
            f"project `{name}` cannot be deleted: {_serving(server)}",
            hint="stop that server first, or start it again without this folder; one that died is given up after"
            " `agent.lease_seconds`",
        )


def unsaved_folders(tx: Transaction, now: int) -> list[UnsavedFolder]:
    """The folders of living processes that are not saved, and why."""
    served = served_folders(tx, now)
    roots = project_roots(tx) if served else {}
    found = [(one, _refusal(one.project, roots.get(one.project, one.root), one.root, served)) for one in served]
    return [UnsavedFolder(one, error) for one, error in found if error is not None]


def _refusal(name: str, stored: str, root: str, served: list[ServedFolder]) -> StateError | None:
    if stored == root:
        return None
    if not stored:
        return StateError(
            f"project `{name}` cannot be saved from `{root}`: it is one that was pushed",
            hint="give this folder another name with `--projects NAME=PATH`, or free the name first with"
            f" `headrace delete {name}`",
        )
    if not root:
        return StateError(
            f"project `{name}` cannot be pushed: it is saved from the folder `{stored}`",
            hint="push it under another name, or stop who serves the folder and free the name with"
            f" `headrace delete {name}`",
        )
    other = _server_of(name, stored, served)
    if other is None:
        return None
    return StateError(
        f"project `{name}` cannot be saved from `{root}`: {_serving(other)}",
        hint="give this folder another name with `--projects NAME=PATH`, or stop the other server first; one that died"
        " is given up after `agent.lease_seconds`",
    )


def _server_of(name: str, root: str, served: list[ServedFolder]) -> ServedFolder | None:
    return next((one for one in served if (one.project, one.root) == (name, root)), None)


def _serving(one: ServedFolder) -> str:
    return f"scheduler `{one.process}` (process {one.pid} on `{one.host}`) serves it from `{one.root}`"
