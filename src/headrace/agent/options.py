"""How an agent behaves."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from headrace.definition import Isolation


@dataclass(frozen=True)
class AgentOptions:
    """How an agent behaves."""

    slots: int = 8
    queues: tuple[str, ...] = ("default",)
    lease_seconds: float = 15.0
    renew_seconds: float = 5.0
    poll_seconds: float = 5.0
    """How long it waits for a wake-up before it looks by itself."""
    gather_seconds: float = 0.02
    """How long results that come fast wait for others at most, so that one transaction serves them all."""
    retry_seconds: float = 0.5
    """Between two attempts to reach a database that is away."""
    kill_grace_seconds: float = 5.0
    errand_timeout_seconds: float = 300.0
    """How long callbacks and other errands may take."""
    attempt_id: int | None = None
    """Serve only this attempt, and what is added by `serve`: a private agent for one run."""
    isolation: Isolation = "process"
    """For tasks that do not say how they want to be isolated."""
    max_tasks_per_run: int = 10_000
    """A result that would add more of them is a failure."""
    max_map_length: int = 100_000
    """How many elements a result may have that tasks are mapped over."""
    revisions_dir: Path | None = None
    """Where pushed revisions are unpacked. None: beside the logs."""
    max_archive_bytes: int = 512 * 1024 * 1024
    name: str = ""
