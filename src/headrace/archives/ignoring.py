"""Files that say what to leave out, written like `.gitignore`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple


class IgnoreRule(NamedTuple):
    """One line of an ignore file."""

    folder: str
    """Where the ignore file is, relative to the project's folder; the rule holds below it."""
    pattern: re.Pattern[str]
    is_for_folders: bool = False
    is_exception: bool = False
    is_found_anywhere: bool = False
    """A regular expression that may match any part of the path."""

    def matches(self, path: str, *, is_folder: bool) -> bool:
        if self.is_for_folders and not is_folder:
            return False
        inside = path if self.folder == "." else path.removeprefix(f"{self.folder}/")
        found = self.pattern.search(inside) if self.is_found_anywhere else self.pattern.fullmatch(inside)
        return found is not None


def is_ignored(path: str, rules: Sequence[IgnoreRule], *, is_folder: bool) -> bool:
    """What the last rule that matches a path says of it."""
    for rule in reversed(rules):
        if rule.matches(path, is_folder=is_folder):
            return not rule.is_exception
    return False


def glob_rules(folder: str, lines: Iterable[str]) -> list[IgnoreRule]:
    """The rules of an ignore file in a folder, given as its lines."""
    return [_rule(folder, line.strip()) for line in lines if line.strip() and not line.startswith("#")]


def _rule(folder: str, line: str) -> IgnoreRule:
    is_exception = line.startswith("!")
    glob = line.removeprefix("!")
    is_for_folders = glob.endswith("/")
    glob = glob.rstrip("/")
    # As in git: a slash at the start or in the middle ties the pattern to the ignore file's own folder.
    anywhere = "" if "/" in glob else "(?:.*/)?"
    return IgnoreRule(folder, re.compile(anywhere + _translate(glob.lstrip("/"))), is_for_folders, is_exception)


_GLOB_PARTS = re.compile(r"\*\*/|/\*\*|\*|\?|\[!?[^\]]+\]|.")


def _translate(glob: str) -> str:
    """A gitignore pattern as a regular expression over the whole path."""
    meanings = {"**/": "(?:.*/)?", "/**": "/.*", "*": "[^/]*", "?": "[^/]"}
    return "".join(
        meanings.get(part) or (part.replace("[!", "[^", 1) if len(part) > 2 else re.escape(part))
        for part in _GLOB_PARTS.findall(glob)
    )
