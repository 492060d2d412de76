"""Reads code blocks and links out of Markdown pages."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]

_FENCE = re.compile(r"^(?P<indent> *)```(?P<info>[^\n`]*)\n(?P<text>.*?)^(?P=indent)```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\[[^\]]*\]\((?P<target>[^)\s]+)\)")
_HEADING = re.compile(r"^#+ +(?P<title>.+)$", re.MULTILINE)


class Block(NamedTuple):
    """```` ```language note ```` with its text."""

    line: int
    language: str
    note: str
    text: str


def blocks_of(page: Path) -> list[Block]:
    """The code blocks of a page, in order."""
    content = page.read_text(encoding="utf-8")
    found = []
    for match in _FENCE.finditer(content):
        language, _, note = match["info"].strip().partition(" ")
        text = re.sub(rf"^{match['indent']}", "", match["text"], flags=re.MULTILINE)
        found.append(Block(content.count("\n", 0, match.start()) + 1, language, note, text))
    return found


def prose_of(page: Path) -> str:
    """A page without its code blocks."""
    return _FENCE.sub("", page.read_text(encoding="utf-8"))


def links_of(page: Path) -> Iterator[str]:
    """The targets of a page's links, without those to other sites."""
    for match in _LINK.finditer(prose_of(page)):
        if "://" not in match["target"]:
            yield match["target"]


def anchors_of(page: Path) -> set[str]:
    """What may stand behind `#` in a link to this page."""
    return {_anchor(match["title"]) for match in _HEADING.finditer(prose_of(page))}


def _anchor(title: str) -> str:
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")
