"""An id of a run that is the same wherever and however often it is asked for."""

from __future__ import annotations

import uuid

_SESSION_IDS = uuid.UUID("8a6f7d1e-3c0b-5d52-9f0e-6c1d2f7b4a90")
"""Namespace of these ids; any fixed one will do."""


def session_uuid(project: str, workflow: str, run_key: str) -> str:
    """What tasks see as `session_uuid` and people as `uuid`."""
    return str(uuid.uuid5(_SESSION_IDS, f"{project}\n{workflow}\n{run_key}"))
