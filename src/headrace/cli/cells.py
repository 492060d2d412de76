"""Texts in the cells of a terminal, where a letter of Japanese or Chinese takes two."""

from __future__ import annotations

import unicodedata

_ELLIPSIS = "…"


def width(text: str) -> int:
    """How many cells a text takes."""
    return len(text) if text.isascii() else sum(map(_cells, text))


def cut(text: str, most: int) -> str:
    """As much of the beginning of a text as fits."""
    if text.isascii():
        return text[:most]
    taken = 0
    for position, letter in enumerate(text):
        taken += _cells(letter)
        if taken > most:
            return text[:position]
    return text


def shortened(text: str, most: int) -> str:
    """The beginning and the end of a text that does not fit."""
    if width(text) <= most:
        return text
    return f"{cut(text, (most - 1) // 2)}{_ELLIPSIS}{cut(text[::-1], most // 2)[::-1]}"


def padded(text: str, columns: int) -> str:
    """The text with spaces behind it, up to a column."""
    return text + " " * (columns - width(text))


def _cells(letter: str) -> int:
    if unicodedata.combining(letter):
        return 0
    return 2 if unicodedata.east_asian_width(letter) in "WF" else 1
