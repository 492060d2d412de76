"""How the local executor is tuned, and which program runs a language."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from headrace.handoff import MESSAGE_LIMIT_BYTES
from headrace.logs import USUAL_RULES, MaskingRules, Output


class Program(NamedTuple):
    """`module:function` of a language's loader (folder, file, bytes or None) and of its task runner."""

    loader: str
    runner: str


@dataclass(frozen=True, slots=True)
class LocalOptions:
    """Every number has a default that suits a small machine."""

    load_timeout_seconds: float = 30.0
    """How long a workflow file may take to load."""
    spare_idle_seconds: float = 60.0
    """Children that were forked ahead leave when their file had nothing to do for so long."""
    zygote_idle_seconds: float = 600.0
    """A warm parent leaves when its file had nothing to do for so long."""
    max_zygotes: int = 8
    """Beyond this many warm parents the one that was idle longest leaves."""
    max_spares: int = 8
    """How many children of one file may be forked ahead of need."""
    tries_per_process: int = 100
    """A process with isolation `reuse` is replaced after so many tries …"""
    growth_limit_bytes: int = 128 * 1024 * 1024
    """… or when it has grown by so much."""
    timeout_grace_seconds: float = 5.0
    """How long after a try's own timeout the executor steps in."""
    limit_bytes: int = MESSAGE_LIMIT_BYTES
    """The largest result or question of a task."""
    python: str = sys.executable
    masking: MaskingRules = USUAL_RULES
    environment: Mapping[str, str] | None = None
    """The environment of task processes; None: this process's own."""
    output: Output | None = None
    """Who else is told what tasks print."""
