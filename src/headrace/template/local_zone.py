"""The time zone that dates without one are in. The C library has a single one for the whole process."""

from __future__ import annotations

import contextlib
import os
import re
import time
import zoneinfo
from collections.abc import Iterator
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

_OFFSET = re.compile(r"([+-])(\d{2}):?(\d{2})(?::?\d{2})?")
_POSIX_UTC = "UTC0"


@contextlib.contextmanager
def local_zone(name: str) -> Iterator[None]:
    """Let the process's local time be that of a zone (`Asia/Tokyo`, `+09:00`) for a while."""
    before = os.environ.get("TZ")
    os.environ["TZ"] = posix_zone(name)
    time.tzset()
    try:
        yield
    finally:
        if before is None:
            del os.environ["TZ"]
        else:
            os.environ["TZ"] = before
        time.tzset()


@lru_cache(maxsize=64)
def posix_zone(name: str) -> str:
    """The zone as the C library reads it from `TZ`: a file with its rules, or a fixed distance from UTC."""
    offset = _OFFSET.fullmatch(name)
    if offset is not None:
        # There the sign says how far UTC is from here, and not how far here is from UTC.
        sign = "-" if offset[1] == "+" else "+"
        return f"<{offset[1]}{offset[2]}{offset[3]}>{sign}{offset[2]}:{offset[3]}"
    return next((str(file) for file in _files(name) if file.is_file()), _POSIX_UTC)


def _files(name: str) -> Iterator[Path]:
    """Where the rules of a zone may be: in the system's database or, on a machine without one, in Python's."""
    yield from (Path(folder, name) for folder in zoneinfo.TZPATH)
    if (package := find_spec("tzdata")) is not None:
        yield from (Path(folder, "zoneinfo", name) for folder in package.submodule_search_locations or ())
