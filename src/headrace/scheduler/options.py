"""How a scheduler behaves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class SchedulerOptions:
    """How a scheduler behaves."""

    name: str = ""
    projects: Mapping[str, str] = field(default_factory=dict)
    """The projects that its process saves, each with its folder; it announces them with itself."""
    poll_seconds: float = 5.0
    """How long it waits for a wake-up before it looks by itself."""
    lease_seconds: float = 15.0
    renew_seconds: float = 5.0
    rescue_seconds: float = 1.0
    """How often it looks for agents that are gone."""
    patience_seconds: float = 0.0
    """How long these may take to renew their leases after the scheduler was away itself."""
    revive_seconds: float = 60.0
    """How often it looks for runs in which nothing moves."""
    watch_seconds: float = 5.0
    """How often it looks which assets are to be watched."""
    prune_seconds: float = 3600.0
    correct_clock_seconds: float = 60.0
    retention_days: int | None = None
    """Runs that ended longer ago are deleted; None: never."""
    max_runs_per_tick: int = 100
    """How many runs of one workflow are started in one go."""
    run_seconds: float | None = None
    task_seconds: float | None = None
    """Runs that are older, or have an older task, are stopped; None: never."""
    check_slas: bool = True
    """Whether tasks that are not done in time are noticed."""
    age_seconds: float = 5.0
    """How often it looks for such runs."""
