"""DAG files in a zip archive: the modules at its root are loaded, with the archive itself first on the path."""

from __future__ import annotations

import tempfile
import zipfile
from pathlib import Path

from headrace.errors import LoadError

_LARGEST_MODULE = 16 * 1024 * 1024
_copies: list[tempfile.TemporaryDirectory[str]] = []
"""Kept archives that were written out; they go when the process ends."""


def zipped_modules(path: Path, file: str) -> dict[str, bytes]:
    """The Python modules at the root of an archive, by name, in the order of their names."""
    try:
        with zipfile.ZipFile(path) as archive:
            names = sorted(name for name in archive.namelist() if name.endswith(".py") and "/" not in name)
            return {name: _read(archive, name, file) for name in names}
    except (OSError, zipfile.BadZipFile) as error:
        raise LoadError(f"`{file}` could not be read as a zip archive: {error}", file=file) from error


def _read(archive: zipfile.ZipFile, name: str, file: str) -> bytes:
    # The size that the archive tells may be a lie, so no more than that is read.
    with archive.open(name) as member:
        content = member.read(_LARGEST_MODULE + 1)
    if len(content) > _LARGEST_MODULE:
        raise LoadError(f"`{name}` in `{file}` is larger than {_LARGEST_MODULE // 1024 // 1024} MB", file=file)
    return content


def written_out(content: bytes, path: Path) -> Path:
    """A file with these bytes: the archive itself if it still has them, otherwise a copy."""
    if path.is_file() and path.read_bytes() == content:
        return path
    folder = tempfile.TemporaryDirectory(prefix="headrace-zip-")
    _copies.append(folder)
    copy = Path(folder.name) / path.name
    copy.write_bytes(content)
    return copy
