"""Which files of a project's folder may hold workflows.

`.dig` files count at the top of the folder, Python files and zip archives of them anywhere below it if they mention
Airflow or Headrace and a DAG or an asset. `.headraceignore` and `.airflowignore`, in any folder, leave out what their
patterns match; they are written like `.gitignore`, or `.airflowignore` with regular expressions if the settings say so.
"""

from __future__ import annotations

import logging
import os
import re
import zipfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

from headrace.archives.ignoring import IgnoreRule, glob_rules, is_ignored
from headrace.definition import is_storable
from headrace.errors import LoadError

_log = logging.getLogger("headrace.projects")

_LARGEST_MODULE = 16 * 1024 * 1024
_IGNORE_FILES = (".airflowignore", ".headraceignore")
_SKIPPED_FOLDERS = ("__pycache__", "node_modules", "site-packages")
_FACES = re.compile(rb"airflow|headrace", re.IGNORECASE)
_SUBJECTS = re.compile(rb"dag|asset", re.IGNORECASE)


class Discovery(NamedTuple):
    """How files are found."""

    is_safe: bool = True
    """Load only Python files that mention workflows."""
    ignore_syntax: str = "glob"
    """Of `.airflowignore`: `glob` or `regexp`."""


def find_files(root: Path, discovery: Discovery | None = None) -> list[str]:
    """Paths of the files that are worth loading, relative to the project's folder and sorted."""
    if not root.is_dir():
        raise LoadError(f"the project's folder `{root}` does not exist")
    return sorted(_walk(root, ".", [], {os.path.realpath(root)}, discovery or Discovery()))


def _walk(root: Path, folder: str, rules: list[IgnoreRule], seen: set[str], discovery: Discovery) -> Iterator[str]:
    rules = [*rules, *_rules_in(root, folder, discovery)]
    for entry in _entries(root / folder):
        path = entry.name if folder == "." else f"{folder}/{entry.name}"
        is_folder = entry.is_dir()
        if entry.name.startswith(".") or is_ignored(path, rules, is_folder=is_folder):
            continue
        if not is_storable(entry.name):
            _warn_of_name(entry.path)
        elif is_folder and not _is_skipped(entry, seen):
            yield from _walk(root, path, rules, seen, discovery)
        elif not is_folder and _is_candidate(entry, discovery, is_top=folder == "."):
            yield path


@cache
def _warn_of_name(path: str) -> None:
    """Once in a process, however often it looks."""
    _log.warning("%r is left out: its name is not UTF-8", path)


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except OSError:
        # It vanished, or is not ours to read: then it holds no workflows for us either.
        return []


def _is_skipped(entry: os.DirEntry[str], seen: set[str]) -> bool:
    """Folders that hold no workflows, and those that links have led to before."""
    if entry.name in _SKIPPED_FOLDERS or os.path.exists(os.path.join(entry.path, "pyvenv.cfg")):
        return True
    place = os.path.realpath(entry.path)
    if place in seen:
        return True
    seen.add(place)
    return False


def _is_candidate(entry: os.DirEntry[str], discovery: Discovery, *, is_top: bool) -> bool:
    if entry.name.endswith(".dig"):
        return is_top
    if entry.name.endswith(".zip"):
        return _holds_workflows(entry.path)
    return entry.name.endswith(".py") and (not discovery.is_safe or _mentions_workflows(_bytes_of(entry.path)))


def _bytes_of(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError:
        return b""


def _mentions_workflows(content: bytes) -> bool:
    return _FACES.search(content) is not None and _SUBJECTS.search(content) is not None


def _holds_workflows(path: str) -> bool:
    """Whether a module at the root of an archive mentions workflows."""
    try:
        with zipfile.ZipFile(path) as archive:
            modules = [one for one in archive.infolist() if one.filename.endswith(".py") and "/" not in one.filename]
            small = [one for one in modules if one.file_size <= _LARGEST_MODULE]
            return any(_mentions_workflows(archive.read(one)) for one in small)
    except (OSError, zipfile.BadZipFile, RuntimeError, NotImplementedError):
        return False


def _rules_in(root: Path, folder: str, discovery: Discovery) -> Iterator[IgnoreRule]:
    for name in _IGNORE_FILES:
        try:
            lines = (root / folder / name).read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError:
            continue
        if name == ".airflowignore" and discovery.ignore_syntax == "regexp":
            yield from _expressions(root, folder, lines)
        else:
            yield from glob_rules(folder, lines)


def _expressions(root: Path, folder: str, lines: list[str]) -> Iterator[IgnoreRule]:
    for line in lines:
        text = re.sub(r"\s*#.*", "", line).strip()
        try:
            pattern = re.compile(text)
        except re.error as error:
            _log.warning("`%s` in `%s` is not a regular expression: %s", text, root / folder / ".airflowignore", error)
            continue
        if text:
            yield IgnoreRule(folder, pattern, is_found_anywhere=True)
