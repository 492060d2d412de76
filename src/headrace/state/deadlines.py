"""When tasks and runs are to be done, and whether they were."""

from __future__ import annotations

from datetime import datetime, time
from typing import NamedTuple

from headrace.clock import from_micros, to_micros
from headrace.definition import Deadline
from headrace.state.past import FINE
from headrace.state.task import FINISHED, Attempt, Task
from headrace.timetable import next_wall_time, zone_of

RENEWED_BY_ATTEMPT = frozenset({"run_after", "queued", "average_end"})
"""Moments that are others for each attempt of a run …"""
RENEWED_BY_CLEARING = frozenset({"queued"})
"""… and those that are others once tasks of it were cleared."""


class RunMoments(NamedTuple):
    """What deadlines of a run count from, in microseconds since 1970."""

    type: str
    logical_at: int | None
    interval_end: int | None
    run_after: int
    queued_at: int


def has_deadline(deadline: Deadline, run_type: str) -> bool:
    """Whether runs of this type have it."""
    return run_type not in deadline.not_run_types and (not deadline.run_types or run_type in deadline.run_types)


def due_at(deadline: Deadline, run: RunMoments, timezone: str, average_micros: int | None = None) -> int | None:
    """When it is due; None if that moment does not exist for this run."""
    since = _moment(deadline, run, average_micros)
    if since is None:
        return None
    if deadline.wall_time is not None:
        wall = time.fromisoformat(deadline.wall_time)
        return to_micros(next_wall_time(wall, from_micros(since), zone_of(timezone)))
    return since + round(deadline.seconds * 1_000_000)


def _moment(deadline: Deadline, run: RunMoments, average_micros: int | None) -> int | None:
    if deadline.counts_from == "instant":
        return None if deadline.instant is None else to_micros(datetime.fromisoformat(deadline.instant))
    if deadline.counts_from == "average_end":
        return None if average_micros is None else run.queued_at + average_micros
    return {
        "logical_time": run.logical_at,
        # A run that is about one moment only has no interval to end.
        "interval_end": run.run_after if run.interval_end is None else run.interval_end,
        "run_after": run.run_after,
        "queued": run.queued_at,
    }[deadline.counts_from]


def was_met(deadline: Deadline, due: int, done: Attempt | Task) -> bool:
    """Whether what is to be done was done in time."""
    enough = FINISHED if deadline.is_met_by_failure else FINE
    return done.state in enough and done.ended_at is not None and done.ended_at <= due
