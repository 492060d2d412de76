"""Paths that a task may use: none of them leads out of the project."""

from __future__ import annotations

from pathlib import Path

from headrace.operators.dig.contract import OperatorError


def inside_project(root: Path, path: Path, written: str) -> Path:
    """The path without links, if it is in the project's folder. `written` is how messages call it."""
    resolved = path.resolve()
    if not resolved.is_relative_to(root):
        raise OperatorError(f"expected `{written}` to be inside the project, got: `{resolved}`", is_retryable=False)
    return resolved


def working_folder(root: Path, workdir: object) -> Path:
    """The folder that a task works in: the project's, or the one that its `_workdir` names."""
    if workdir in (None, ""):
        return root
    folder = inside_project(root, root / str(workdir), "_workdir")
    if not folder.is_dir():
        raise OperatorError(f"the folder `{workdir}` of `_workdir` does not exist", is_retryable=False)
    return folder
