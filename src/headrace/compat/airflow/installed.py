"""Airflow's provider packages as they are installed: `airflow/providers/…` below any folder of the import path."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path


def find_installed(path: str) -> ModuleSpec | None:
    """The module of an installed provider package, or None."""
    parents = path.split(".")[:-1]
    return PathFinder.find_spec(path, [str(Path(entry or ".").joinpath(*parents)) for entry in sys.path])


def find_example_module(path: str, parent: Sequence[str] | None) -> ModuleSpec | None:
    """A module that Airflow's examples bring along: in an installed Airflow, or in a folder beside the DAG files.

    `airflow.example_dags.plugins.workday` is `plugins/workday.py` of the project.
    """
    if path.count(".") > 2:
        return PathFinder.find_spec(path, parent)
    return find_installed(path) or PathFinder.find_spec(path, [entry or "." for entry in sys.path])


def not_installed(path: str) -> str:
    """What to say about a module that no installed provider package has."""
    parts = path.split(".")[2:]
    provider = "-".join(parts[:2] if parts[0] in _FAMILIES else parts[:1]).replace("_", "-")
    if find_installed(".".join(path.split(".")[: 2 + provider.count("-") + 1])) is not None:
        return f"cannot import `{path}`: the installed provider `{provider}` has no such module"
    return (
        f"cannot import `{path}`: Airflow's provider `{provider}` is not installed;"
        f" `headrace providers install {provider}` brings it"
    )


_FAMILIES = ("apache", "atlassian", "cncf", "common", "dbt", "microsoft")
"""Folders that hold several providers."""
