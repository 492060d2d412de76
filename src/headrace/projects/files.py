"""Which files of a project's folder may hold workflows.

`.dig` files count at the top of the folder, Python files anywhere below it if they mention Airflow or Headrace and a
DAG or an asset. `.headraceignore` and `.airflowignore`, in any folder, leave out what their patterns match; they are
written like `.gitignore`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from headrace.errors import LoadError

_IGNORE_FILES = (".airflowignore", ".headraceignore")
_SKIPPED_FOLDERS = ("__pycache__", "node_modules", "site-packages")
_FACES = re.compile(rb"airflow|headrace", re.IGNORECASE)
_SUBJECTS = re.compile(rb"dag|asset", re.IGNORECASE)


class _Rule(NamedTuple):
    folder: str
    """Where the ignore file is, relative to the project's folder; the rule holds below it."""
    pattern: re.Pattern[str]
    is_for_folders: bool
    is_exception: bool

    def matches(self, path: str, *, is_folder: bool) -> bool:
        if self.is_for_folders and not is_folder:
            return False
        inside = path if self.folder == "." else path.removeprefix(f"{self.folder}/")
        return self.pattern.fullmatch(inside) is not None


def find_files(root: Path) -> list[str]:
    """Paths of the files that are worth loading, relative to the project's folder and sorted."""
    if not root.is_dir():
        raise LoadError(f"the project's folder `{root}` does not exist")
    return sorted(_walk(root, ".", [], {os.path.realpath(root)}))


def _walk(root: Path, folder: str, rules: list[_Rule], seen: set[str]) -> Iterator[str]:
    rules = [*rules, *_rules_in(root, folder)]
    for entry in _entries(root / folder):
        path = entry.name if folder == "." else f"{folder}/{entry.name}"
        is_folder = entry.is_dir()
        if entry.name.startswith(".") or _is_ignored(path, rules, is_folder=is_folder):
            continue
        if is_folder and not _is_skipped(entry, seen):
            yield from _walk(root, path, rules, seen)
        elif not is_folder and _is_candidate(entry, is_top=folder == "."):
            yield path


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


def _is_candidate(entry: os.DirEntry[str], *, is_top: bool) -> bool:
    if entry.name.endswith(".dig"):
        return is_top
    return entry.name.endswith(".py") and _mentions_workflows(entry.path)


def _mentions_workflows(path: str) -> bool:
    try:
        content = Path(path).read_bytes()
    except OSError:
        return False
    return _FACES.search(content) is not None and _SUBJECTS.search(content) is not None


def _is_ignored(path: str, rules: list[_Rule], *, is_folder: bool) -> bool:
    for rule in reversed(rules):
        if rule.matches(path, is_folder=is_folder):
            return not rule.is_exception
    return False


def _rules_in(root: Path, folder: str) -> list[_Rule]:
    rules = []
    for name in _IGNORE_FILES:
        try:
            lines = (root / folder / name).read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError:
            continue
        rules += [_rule(folder, line.strip()) for line in lines if line.strip() and not line.startswith("#")]
    return rules


def _rule(folder: str, line: str) -> _Rule:
    is_exception = line.startswith("!")
    glob = line.removeprefix("!")
    is_for_folders = glob.endswith("/")
    glob = glob.rstrip("/")
    # As in git: a slash at the start or in the middle ties the pattern to the ignore file's own folder.
    anywhere = "" if "/" in glob else "(?:.*/)?"
    return _Rule(folder, re.compile(anywhere + _translate(glob.lstrip("/"))), is_for_folders, is_exception)


_GLOB_PARTS = re.compile(r"\*\*/|/\*\*|\*|\?|\[!?[^\]]+\]|.")


def _translate(glob: str) -> str:
    """A gitignore pattern as a regular expression over the whole path."""
    meanings = {"**/": "(?:.*/)?", "/**": "/.*", "*": "[^/]*", "?": "[^/]"}
    return "".join(
        meanings.get(part) or (part.replace("[!", "[^", 1) if len(part) > 2 else re.escape(part))
        for part in _GLOB_PARTS.findall(glob)
    )
