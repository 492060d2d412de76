"""Unpacked archives on this machine, one folder each, shared by all processes that need it."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from headrace.archives.packing import archive_digest
from headrace.archives.unpacking import unpack
from headrace.errors import StoreError

_DIGEST = re.compile(r"[0-9a-f]{64}")
_UNUSED_SECONDS = 30 * 86_400
"""A folder that nothing was started in for so long is deleted; whoever needs it again unpacks it again."""
_TOUCH_SECONDS = 3_600


class RevisionFolders:
    """Folders by the digest of their archive. A folder that is there is complete: it appears by a rename."""

    def __init__(self, base: Path, max_bytes: int) -> None:
        self._base = base
        self._max_bytes = max_bytes
        self._touched: dict[str, float] = {}

    def folder(self, digest: str, fetch: Callable[[], bytes | None]) -> Path:
        """Where the archive is unpacked; `fetch` brings its bytes if it is not there yet."""
        if _DIGEST.fullmatch(digest) is None:
            raise StoreError(f"expected the digest of an archive, got: `{digest}`")
        place = self._base / digest
        if not place.is_dir():
            self._drop_unused()
            self._unpack(place, digest, fetch())
        self._touch(place, digest)
        return place

    def _unpack(self, place: Path, digest: str, data: bytes | None) -> None:
        if data is None or archive_digest(data) != digest:
            what = "is not in the store any more" if data is None else "is damaged in the store"
            raise StoreError(f"the archive {digest[:12]} of the pushed revision {what}", hint="push the project again")
        self._base.mkdir(parents=True, exist_ok=True, mode=0o700)
        staging = Path(tempfile.mkdtemp(prefix=".unpacking-", dir=self._base))
        try:
            unpack(data, staging, max_bytes=self._max_bytes)
            os.rename(staging, place)
        except OSError:
            # Somebody else was faster, which is as good.
            if not place.is_dir():
                raise
        finally:
            shutil.rmtree(staging, ignore_errors=True)

    def _touch(self, place: Path, digest: str) -> None:
        now = time.monotonic()
        if now - self._touched.get(digest, -_TOUCH_SECONDS) >= _TOUCH_SECONDS:
            self._touched[digest] = now
            os.utime(place)

    def _drop_unused(self) -> None:
        before = time.time() - _UNUSED_SECONDS
        for place in self._base.iterdir() if self._base.is_dir() else ():
            if place.stat().st_mtime < before:
                shutil.rmtree(place, ignore_errors=True)
