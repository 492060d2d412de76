"""Ids that are the same wherever and however often they are asked for."""

from __future__ import annotations

from hashlib import blake2b
from typing import Any

_VERSION = "8"
"""Of UUIDs whose bits are their maker's own business."""
_VARIANT = "8"


def session_uuid(project: str, workflow: str, run_key: str) -> str:
    """A run's id: what tasks see as `session_uuid` and people as `uuid`."""
    return stable_uuid(project, workflow, run_key)


def stable_uuid(*parts: Any) -> str:
    """A UUID that is made of these parts and of nothing else."""
    # Every `.dig` task has two: `uuid.uuid5` would cost its process a tenth of its memory, for SHA-1 by OpenSSL.
    text = blake2b("\n".join(map(str, parts)).encode(), digest_size=16).hexdigest()
    return f"{text[:8]}-{text[8:12]}-{_VERSION}{text[13:16]}-{_VARIANT}{text[17:20]}-{text[20:]}"
