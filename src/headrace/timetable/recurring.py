"""Schedules that come again and again: which slot is first, which follow, and what is due after a pause."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Literal

from headrace.timetable.partitions import TickPartitions
from headrace.timetable.slots import DUE_LIMIT, Due, Slot
from headrace.timetable.ticks import Ticks

_MOMENT = timedelta(microseconds=1)
# A schedule without a start runs at once if its last tick was missed by less than this, or by a tenth of the period.
_JUST_MISSED = timedelta(minutes=5)


@dataclass(frozen=True, slots=True)
class Family:
    """What the families of schedules disagree about."""

    has_intervals: bool = False
    """A run is for the period from its logical time to the next tick, and is due at its end."""
    delay: timedelta = timedelta(0)
    """Elapsed time between the tick and the moment when the run is due."""
    starts_with_next: bool = False
    """A new workflow waits for the next slot instead of catching up from the schedule's start."""
    ends_by_run_time: bool = False
    """The bounds of the schedule are compared with when a run is due, not with its logical time."""
    lookback: timedelta = timedelta(0)
    """A run is for the period of this length that ends at the tick; its logical time is the period's beginning."""
    first_within: timedelta | None = None
    """A schedule without a start runs at once if its last tick is not older than this; None: as `_JUST_MISSED` says."""
    manual_on_tick: bool = False
    """A run that a person starts is for the last tick."""


@dataclass(frozen=True, slots=True)
class RecurringTimetable:
    """Slots from ticks."""

    ticks: Ticks
    family: Family = Family()
    start: datetime | None = None
    end: datetime | None = None
    catch_up: Literal["all", "latest"] = "latest"
    skip_later_than: timedelta | None = None
    partitions: TickPartitions | None = None

    @property
    def is_periodic(self) -> bool:
        return True

    def first(self, now: datetime) -> Slot | None:
        if self.family.starts_with_next:
            return self.first_due_from(now)
        if self.start is None:
            return self._bounded(self._first_without_start(now))
        earliest = self._bounded(self._slot_from(self.start))
        newest = self._newest_due(now)
        if earliest is None or self.catch_up == "all" or newest is None:
            return earliest
        return earliest if newest.logical_time <= earliest.logical_time else self._bounded(newest)

    def following(self, slot: Slot) -> Slot | None:
        return self._bounded(self._at_tick(self.ticks.after(self._tick_of(slot))))

    def previous(self, slot: Slot) -> Slot | None:
        return self._at_tick(self.ticks.before(self._tick_of(slot)))

    def slots_from(self, instant: datetime) -> Iterator[Slot]:
        slot = self._slot_about(instant)
        while slot is not None:
            yield slot
            slot = self._at_tick(self.ticks.after(self._tick_of(slot)))

    def first_due_from(self, instant: datetime) -> Slot | None:
        return self._bounded(self._running_from(instant))

    def _slot_about(self, instant: datetime) -> Slot | None:
        slot = self._slot_from(instant)
        if slot is None or self.partitions is None:
            return slot
        return self._at_tick(self.partitions.tick(self._tick_of(slot)))

    def slot_at(self, logical_time: datetime) -> Slot:
        start = logical_time.astimezone(UTC)
        end = (self.ticks.after(start) or start) if self.family.has_intervals else start + self.family.lookback
        slot = Slot(logical_time=start, run_at=end + self.family.delay, interval_start=start, interval_end=end)
        if self.partitions is None:
            return slot
        about = self.partitions.time(start)
        return replace(slot, partition_key=self.partitions.key(about), partition_at=about)

    def manual(self, at: datetime) -> Slot:
        at = at.astimezone(UTC)
        if self.family.manual_on_tick:
            newest = self._newest_due(at) or self._running_from(at)
        else:
            newest = self._newest_due(at) if self.family.has_intervals else None
        if newest is None:
            return Slot(at, at, at - self.family.lookback, at)
        return Slot(at, at, newest.interval_start, newest.interval_end)

    def _tick_of(self, slot: Slot) -> datetime:
        return slot.logical_time + self.family.lookback

    def _at_tick(self, tick: datetime | None) -> Slot | None:
        return None if tick is None else self.slot_at(tick - self.family.lookback)

    def due(self, last: Slot | None, now: datetime, *, seen_at: datetime | None = None, limit: int = DUE_LIMIT) -> Due:
        return self.due_from(self.following(last) if last else self.first(seen_at or now), now, limit=limit)

    def due_from(self, planned: Slot | None, now: datetime, *, limit: int = DUE_LIMIT) -> Due:
        start = self._caught_up(planned, now)
        slots = tuple(islice(self._due_slots(start, now), limit))
        return Due(slots, self.following(slots[-1]) if slots else start)

    def _due_slots(self, slot: Slot | None, now: datetime) -> Iterator[Slot]:
        while slot is not None and slot.run_at <= now:
            yield slot
            slot = self.following(slot)

    def _caught_up(self, planned: Slot | None, now: datetime) -> Slot | None:
        """Leave out what catch-up does not want and what is too late to start."""
        if planned is None or planned.run_at > now:
            return planned
        slot: Slot | None = planned
        if self.catch_up == "latest":
            slot = _later(planned, self._newest_allowed(now))
        if slot and self.skip_later_than is not None and slot.run_at < now - self.skip_later_than:
            slot = self.first_due_from(now - self.skip_later_than)
        return slot

    def _newest_allowed(self, now: datetime) -> Slot | None:
        """The newest slot that is due at `now` and lies within the schedule's end."""
        if self.end is None:
            return self._newest_due(now)
        if self.family.ends_by_run_time:
            return self._newest_due(min(now, self.end))
        newest = self._newest_due(now)
        if newest is None or newest.logical_time <= self.end:
            return newest
        return self._at_tick(self.ticks.before(self.end + self.family.lookback + _MOMENT))

    def _first_without_start(self, now: datetime) -> Slot | None:
        newest = self._newest_due(now)
        if newest is None or self.family.has_intervals:
            return newest or self._running_from(now)
        upcoming = self.following(newest)
        if upcoming is None:
            return newest
        tolerance = self.family.first_within
        if tolerance is None:
            tolerance = max(_JUST_MISSED, (upcoming.run_at - newest.run_at) / 10)
        return newest if now - newest.run_at <= tolerance else upcoming

    def _bounded(self, slot: Slot | None) -> Slot | None:
        """The slot, or the first one after the schedule's start; None if it lies after the end."""
        if slot is not None and self.start is not None and self._decisive(slot) < self.start:
            slot = self._slot_from(self.start)
        if slot is None or self.end is None:
            return slot
        return slot if self._decisive(slot) <= self.end else None

    def _decisive(self, slot: Slot) -> datetime:
        """The time of a slot that must lie within the schedule's bounds."""
        return slot.run_at if self.family.ends_by_run_time else slot.logical_time

    def _slot_from(self, instant: datetime) -> Slot | None:
        """The slot with the earliest logical time at or after an instant."""
        return self._at_tick(self.ticks.after(instant + self.family.lookback - _MOMENT))

    def _running_from(self, instant: datetime) -> Slot | None:
        """The slot that is the first to become due at or after an instant."""
        return self._slot_of_run_tick(self.ticks.after(instant - self.family.delay - _MOMENT))

    def _newest_due(self, now: datetime) -> Slot | None:
        """The slot that was the last to become due at or before an instant."""
        return self._slot_of_run_tick(self.ticks.before(now - self.family.delay + _MOMENT))

    def _slot_of_run_tick(self, tick: datetime | None) -> Slot | None:
        if tick is not None and self.family.has_intervals:
            tick = self.ticks.before(tick)
        return self._at_tick(tick)


def _later(slot: Slot, other: Slot | None) -> Slot:
    return slot if other is None or other.logical_time <= slot.logical_time else other
