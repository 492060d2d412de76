"""Packs a project's folder into a tar.gz: its files and links, without what is hidden or ignored.

Names that begin with a dot are left out at every level, except for the ignore files that loading a folder obeys; so is
what `.digdagignore` at the top matches. Names are sorted, so that equal folders give equal archives.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from headrace.archives.ignoring import IgnoreRule, glob_rules, is_ignored
from headrace.errors import UsageError, did_you_mean

_IGNORE_FILE = ".digdagignore"
_KEPT_NAMES = (".airflowignore", ".headraceignore")
_SKIPPED_FOLDERS = ("__pycache__",)


class _Entry(NamedTuple):
    name: str
    """In the archive, with slashes."""
    path: Path
    target: str | None = None
    """Where a link inside of the project leads to, relative to its folder."""


def pack(folder: Path, *, copies_outgoing_links: bool = False, max_bytes: int | None = None) -> bytes:
    """The archive of a folder. A link that leads out of the folder is refused, or its target copied if asked for."""
    if not folder.is_dir():
        raise UsageError(f"the project's folder `{folder}` does not exist", hint=_nearest(folder))
    root = folder.resolve()
    buffer = io.BytesIO()
    total = 0
    # Without a time in its head, so that equal folders give equal archives.
    with (
        gzip.GzipFile(fileobj=buffer, mode="wb", mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive,
    ):
        for entry in sorted(_entries(root, copies_outgoing_links)):
            total += _add(archive, entry)
            if max_bytes is not None and total > max_bytes:
                raise _too_large(folder, max_bytes)
    return buffer.getvalue()


def archive_digest(data: bytes) -> str:
    """What an archive is known by."""
    return hashlib.sha256(data).hexdigest()


def _entries(root: Path, copies_outgoing_links: bool) -> Iterator[_Entry]:
    rules = _rules(root)
    pending: list[tuple[str, Path, frozenset[str]]] = [("", root, frozenset({str(root)}))]
    while pending:
        prefix, folder, above = pending.pop()
        for item in sorted(os.scandir(folder), key=lambda one: one.name):
            name, path = f"{prefix}{item.name}", Path(item.path)
            is_folder = item.is_dir()
            if _is_hidden(item.name) or is_ignored(name, rules, is_folder=is_folder):
                continue
            if item.is_symlink() and (target := _target_inside(root, path)) is not None:
                yield _Entry(name, path, target)
                continue
            if item.is_symlink() and not copies_outgoing_links:
                raise UsageError(
                    f"`{name}` is a link to `{os.readlink(path)}`, which is not in the project's folder",
                    hint="`--copy-outgoing-symlinks` puts what it leads to into the archive",
                )
            if not is_folder:
                yield _Entry(name, path)
            elif item.name not in _SKIPPED_FOLDERS:
                place = os.path.realpath(path)
                if place in above:
                    raise UsageError(f"`{name}` is a link to a folder that it lies in itself")
                pending.append((f"{name}/", path, above | {place}))


def _rules(root: Path) -> list[IgnoreRule]:
    try:
        return glob_rules(".", (root / _IGNORE_FILE).read_text(encoding="utf-8", errors="replace").splitlines())
    except OSError:
        return []


def _is_hidden(name: str) -> bool:
    return name.startswith(".") and name not in _KEPT_NAMES


def _target_inside(root: Path, link: Path) -> str | None:
    """The target of a link, relative to its folder, if it is in the project."""
    real = Path(os.path.realpath(link))
    if not real.is_relative_to(root) or not link.parent.resolve().is_relative_to(root):
        return None
    return os.path.relpath(real, link.parent.resolve())


def _add(archive: tarfile.TarFile, entry: _Entry) -> int:
    """Add one entry; returns how many bytes it has."""
    if entry.target is not None:
        link = tarfile.TarInfo(entry.name)
        link.type, link.linkname, link.mode = tarfile.SYMTYPE, entry.target, 0o777
        archive.addfile(link)
        return 0
    status = entry.path.stat()
    if not entry.path.is_file():
        raise UsageError(f"`{entry.name}` is neither a file nor a folder nor a link: it cannot be put into an archive")
    info = tarfile.TarInfo(entry.name)
    info.mode, info.mtime = status.st_mode & 0o777, int(status.st_mtime)
    with open(entry.path, "rb") as file:
        # As long as it is when it is read: somebody may be writing to it.
        info.size = os.fstat(file.fileno()).st_size
        archive.addfile(info, file)
    return info.size


def _too_large(folder: Path, max_bytes: int) -> UsageError:
    return UsageError(
        f"the files of `{folder}` are more than {max_bytes / 1024 / 1024:g} MB",
        hint="list what tasks do not need in `.digdagignore`, or raise `limits.max_archive_bytes`",
    )


def _nearest(folder: Path) -> str | None:
    try:
        return did_you_mean(folder.name, [one.name for one in folder.parent.iterdir() if one.is_dir()])
    except OSError:
        return None
