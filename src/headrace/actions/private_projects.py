"""Projects in the store of local runs, where any folder of the machine may turn up."""

from __future__ import annotations

from itertools import count
from pathlib import Path

from headrace.store import Transaction, ensure_project, project_roots

_SIGN = "#"


def ensure_private_project(tx: Transaction, root: Path, now: int) -> int:
    """The id of the project that a folder is. Two folders of one name are two projects, with sessions of their own.

    A folder takes over from one of the same name that is gone, because then it was probably moved.
    """
    return ensure_project(tx, _name_for(root, project_roots(tx)), str(root), now)


def folder_name(project: str) -> str:
    """The name of the folder that a project is, by which its secrets are kept."""
    name, sign, number = project.rpartition(_SIGN)
    return name if sign and number.isdecimal() else project


def _name_for(root: Path, known: dict[str, str]) -> str:
    name = root.name or "root"
    names = (name if number == 1 else f"{name}{_SIGN}{number}" for number in count(1))
    candidates = [next(names) for _ in range(len(known) + 1)]
    own = next((one for one in candidates if known.get(one) == str(root)), None)
    return own or next(one for one in candidates if one not in known or not Path(known[one]).is_dir())
