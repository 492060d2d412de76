"""Installs provider packages of Airflow with all that they require, except Airflow itself."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from packaging.requirements import Requirement

from headrace.actions.provider_names import AIRFLOW, PREFIX, unsaid_requirements
from headrace.actions.provider_packages import refuse_beside_airflow, wanted
from headrace.actions.provider_wheels import plan_wheels
from headrace.errors import StateError, UsageError

_NEVER = "python_version < '0'"
_TOLD_LINES = 6
_TOLD_WIDTH = 300
"""How much of what an installer says about a failure is shown."""


@dataclass(frozen=True, slots=True)
class Sources:
    """Where packages come from and where they go."""

    target: Path | None = None
    """A folder, or else the environment of this Python."""
    find_links: tuple[str, ...] = ()
    """Folders with wheels, which are looked through besides the package registry."""
    without_index: bool = False
    """Only those folders."""

    @property
    def where_from(self) -> list[str]:
        links = [word for folder in self.find_links for word in ("--find-links", folder)]
        return [*links, "--no-index"] if self.without_index else links

    @property
    def where_to(self) -> list[str]:
        return [] if self.target is None else ["--target", str(self.target)]


def install_providers(names: Sequence[str], sources: Sources, installer: str | None = None) -> None:
    """Install what is named. UsageError for names that cannot be meant, StateError if it does not work."""
    wishes = wanted(names)
    refuse_beside_airflow(sources.target)
    chosen = installer or _present_installer()
    with tempfile.TemporaryDirectory(prefix="headrace-providers-") as folder:
        (_with_uv if chosen == "uv" else _with_pip)(wishes, sources, Path(folder))


def _present_installer() -> str:
    if _uv():
        return "uv"
    if importlib.util.find_spec("pip"):
        return "pip"
    raise StateError(
        "neither uv nor pip was found, one of which installs the packages",
        hint=f"`{sys.executable} -m ensurepip` brings pip",
    )


def _uv() -> list[str]:
    if importlib.util.find_spec("uv"):
        return [sys.executable, "-m", "uv"]
    path = shutil.which("uv")
    return [path] if path else []


def _with_uv(wishes: list[Requirement], sources: Sources, folder: Path) -> None:
    if not _uv():
        raise UsageError("uv was not found", hint="`--installer pip`")
    overrides = folder / "without-airflow.txt"
    overrides.write_text("".join(f"{name} ; {_NEVER}\n" for name in AIRFLOW))
    command = [*_uv(), "pip", "install", "--python", sys.executable, "--overrides", str(overrides)]
    _run([*command, *sources.where_from, *sources.where_to, *map(str, wishes), *_unsaid(wishes)], wishes)


def _with_pip(wishes: list[Requirement], sources: Sources, folder: Path) -> None:
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]

    def fetch(wish: Requirement) -> Path:
        place = Path(tempfile.mkdtemp(dir=folder))
        options = ["--no-deps", "--only-binary", ":all:", "--dest", str(place), *sources.where_from]
        _run([*pip, "download", *options, str(wish)], [wish])
        return next(place.glob("*.whl"))

    plan = plan_wheels(wishes, fetch)
    others = [*plan.others, *_unsaid([Requirement(name) for name in plan.wheels])]
    _run([*pip, "install", *sources.where_from, *sources.where_to, *others], wishes)
    wheels = [str(path) for path in plan.wheels.values()]
    _run([*pip, "install", "--no-deps", *sources.where_to, *wheels], wishes)


def _unsaid(packages: list[Requirement]) -> tuple[str, ...]:
    return unsaid_requirements({one.name.removeprefix(PREFIX) for one in packages})


def _run(command: list[str], wishes: list[Requirement]) -> None:
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode != 0:
        named = ", ".join(f"`{one}`" for one in wishes)
        lines = done.stdout.strip().splitlines()[-_TOLD_LINES:]
        told = "\n".join(f"  {line[:_TOLD_WIDTH]}" for line in lines)
        raise StateError(
            f"could not install {named}: {_program(command)} ended with code {done.returncode}\n{told}",
            hint="without a network, `--find-links FOLDER --no-index` installs from wheels in a folder",
        )


def _program(command: list[str]) -> str:
    return command[2] if command[1] == "-m" else Path(command[0]).name
