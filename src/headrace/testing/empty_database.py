"""New SQLite databases for tests: the schema is created once per process and copied from then on."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from headrace.store import Store


def new_sqlite(path: Path) -> str:
    """The URL of a database in this file, which is made, with the schema and nothing else, if it is not there."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(_empty())
    return f"sqlite:///{path}"


@cache
def _empty() -> bytes:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "empty.db"
        Store(f"sqlite:///{path}").dispose()
        return path.read_bytes()
