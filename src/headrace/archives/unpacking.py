"""Unpacks an archive that somebody else has made, without trusting any of it.

Files, folders and links that stay inside are all that an archive may hold; whatever else it holds, nothing outside of
the destination is touched and no more than the allowed bytes are read.
"""

from __future__ import annotations

import gzip
import io
import os
import posixpath
import tarfile
import zlib
from pathlib import Path
from typing import IO

from headrace.errors import UsageError

MAX_ENTRIES = 100_000
_OVERHEAD = 2048
"""What an entry may take besides its bytes: its head, a head for a long name, padding."""
_COPY_BYTES = 1_048_576


def unpack(data: bytes, destination: Path, *, max_bytes: int) -> None:
    """Unpack a tar.gz into an existing, empty folder. Raises UsageError with the name of what is wrong in it."""
    limit = max_bytes + _OVERHEAD * MAX_ENTRIES
    seen: set[str] = set()
    total = 0
    try:
        with _Bounded(data, limit) as packed, tarfile.open(fileobj=packed, mode="r|") as archive:
            for member in archive:
                name = _checked_name(member.name)
                total += member.size
                if total > max_bytes or len(seen) >= MAX_ENTRIES:
                    raise _too_large(max_bytes)
                if name in seen and not member.isdir():
                    raise UsageError(f"the archive holds `{name}` twice")
                seen.add(name)
                _unpack_member(archive, member, name, destination)
    except (tarfile.TarError, OSError, EOFError, zlib.error) as error:
        raise UsageError(f"could not unpack the archive: {error or type(error).__name__}") from None
    for name in seen:
        _check_inside(destination, destination / name, name)


class _Bounded(gzip.GzipFile):
    """Stops reading when more comes out than may be there: a few bytes can unpack to many."""

    def __init__(self, data: bytes, limit: int) -> None:
        super().__init__(fileobj=io.BytesIO(data))
        self._allowed = self._left = limit

    def read(self, size: int | None = -1) -> bytes:
        data = super().read(self._left + 1 if size is None or size < 0 else min(size, self._left + 1))
        self._left -= len(data)
        if self._left < 0:
            raise _too_large(self._allowed)
        return data


def _unpack_member(archive: tarfile.TarFile, member: tarfile.TarInfo, name: str, destination: Path) -> None:
    path = destination / name
    if member.isdir():
        path.mkdir(parents=True, exist_ok=True)
    elif member.issym():
        _check_target(name, member.linkname)
        _make_parent(destination, path, name)
        path.symlink_to(member.linkname)
    elif member.isreg():
        _make_parent(destination, path, name)
        source = archive.extractfile(member)
        assert source is not None, "regular files have content"
        _write(path, source, member.mode & 0o777)
    else:
        raise UsageError(f"`{name}` in the archive is neither a file nor a folder nor a link")


def _make_parent(destination: Path, path: Path, name: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    # A link that came before may stand in the way.
    _check_inside(destination, path.parent, name)


def _write(path: Path, source: IO[bytes], mode: int) -> None:
    # Exclusive and without following links: it is a new file or none.
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, mode)
    with os.fdopen(descriptor, "wb") as file:
        while chunk := source.read(_COPY_BYTES):
            file.write(chunk)
        os.fchmod(file.fileno(), mode | 0o600)


def _checked_name(name: str) -> str:
    clean = posixpath.normpath(name)
    if name.startswith("/") or clean.split("/")[0] == ".." or "\0" in name or "\\" in name:
        raise UsageError(f"`{name}` in the archive leads out of the project's folder")
    return clean


def _check_target(name: str, target: str) -> None:
    reached = posixpath.normpath(posixpath.join(posixpath.dirname(name), target))
    if target.startswith("/") or reached.split("/")[0] == "..":
        raise UsageError(f"the link `{name}` in the archive leads out of the project's folder, to `{target}`")


def _check_inside(destination: Path, path: Path, name: str) -> None:
    if not Path(os.path.realpath(path)).is_relative_to(os.path.realpath(destination)):
        raise UsageError(f"`{name}` in the archive leads out of the project's folder")


def _too_large(max_bytes: int) -> UsageError:
    return UsageError(
        f"the archive unpacks to more than {max_bytes / 1024 / 1024:g} MB or {MAX_ENTRIES} files",
        hint="the setting `limits.max_archive_bytes` says how much is allowed",
    )
