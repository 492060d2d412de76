"""What a revision of a file is known by, and how much of it is kept."""

from __future__ import annotations

import hashlib

KEPT_BYTES = 1024 * 1024
"""The content of a larger file is not kept with its revision."""


def content_digest(content: bytes) -> str:
    """Changes if and only if a file's bytes change; it names the revision of the file."""
    return hashlib.sha256(content).hexdigest()
