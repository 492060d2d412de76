"""Libraries that expressions find without asking: moment, and moment-timezone for `moment.tz`.

They are read when an expression first mentions them, so that all others stay cheap.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

_FOLDER = Path(__file__).parent / "libraries"


class Library(NamedTuple):
    name: str
    """As the libraries call each other."""
    mention: str
    """Where this occurs in an expression, the library is needed."""


LIBRARIES = (Library("moment", "moment"), Library("moment-timezone", "tz"))
"""In the order of loading: each may use those before it."""


def mentioned(text: str) -> Iterator[str]:
    """The names of the libraries that a text needs. Whoever needs one needs those before it."""
    if LIBRARIES[0].mention in text:
        yield from (library.name for library in LIBRARIES if library.mention in text)


def source_of(name: str) -> str:
    """The library's JavaScript."""
    return (_FOLDER / f"{name}.min.js").read_text(encoding="utf-8")
