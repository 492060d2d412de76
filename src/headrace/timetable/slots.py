"""What a timetable says: slots, each of which becomes one run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple, Protocol

DUE_LIMIT = 100
"""How many slots one question about due slots returns at most, unless the caller says otherwise."""


@dataclass(frozen=True, slots=True)
class Slot:
    """One planned run. All instants are aware and in UTC."""

    logical_time: datetime
    """What the run is for, and its identity within the workflow."""
    run_at: datetime
    """When it becomes due; never before `logical_time`."""
    interval_start: datetime
    interval_end: datetime
    """The period whose data the run works on. A schedule without periods has both at the logical time."""
    partition_key: str | None = None
    """The partition that the run is for. Such a run is known by it and has no logical time of its own …"""
    partition_at: datetime | None = None
    """… and this is when the partition begins."""

    @property
    def about(self) -> datetime:
        """The time that a range of dates means."""
        return self.logical_time if self.partition_at is None else self.partition_at


class Due(NamedTuple):
    slots: tuple[Slot, ...]
    """To be started now, oldest first."""
    next: Slot | None
    """The slot after those: store it and ask again at its `run_at`. It may be due already if the limit was reached."""


class Timetable(Protocol):
    """The slots of one schedule. A slot given to it may also have a logical time that is not on the schedule."""

    @property
    def is_periodic(self) -> bool:
        """Whether it has times in the past that can be filled in."""
        ...

    def first(self, now: datetime) -> Slot | None:
        """The slot to plan for a workflow that is first seen, or seen again after a change, at `now`."""
        ...

    def following(self, slot: Slot) -> Slot | None:
        """The next slot after another one. None: the schedule has ended."""
        ...

    def previous(self, slot: Slot) -> Slot | None:
        """The slot before another one, also if it lies before the schedule's start."""
        ...

    def slots_from(self, instant: datetime) -> Iterator[Slot]:
        """Every slot that is about a time at or after an instant, whatever the schedule's start and end are."""
        ...

    def first_due_from(self, instant: datetime) -> Slot | None:
        """The slot that is the first to become due at or after an instant. None: the schedule has ended by then."""
        ...

    def slot_at(self, logical_time: datetime) -> Slot:
        """The slot of a logical time, to get back what was stored as a mere instant."""
        ...

    def manual(self, at: datetime) -> Slot:
        """The slot of a run that a person starts at this time; its interval is the last complete one."""
        ...

    def due(self, last: Slot | None, now: datetime, *, seen_at: datetime | None = None, limit: int = DUE_LIMIT) -> Due:
        """What to start now if `last` was the last slot that was started or left out.

        Without one, the workflow counts as first seen at `seen_at`, or now.
        """
        ...

    def due_from(self, planned: Slot | None, now: datetime, *, limit: int = DUE_LIMIT) -> Due:
        """What to start now if `planned` is the slot that comes next: catch-up and late slots are decided here."""
        ...
