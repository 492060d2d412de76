"""Schedules without times of their own: back to back, and never."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from headrace.timetable.slots import DUE_LIMIT, Due, Slot

_PAUSE = timedelta(seconds=1)
"""Between the start of a run and the first look whether the next one may start."""


@dataclass(frozen=True, slots=True)
class NeverTimetable:
    """No run starts by the clock; something else starts them, or nobody does."""

    @property
    def is_periodic(self) -> bool:
        return False

    def first(self, now: datetime) -> Slot | None:
        return None

    def following(self, slot: Slot) -> Slot | None:
        return None

    def previous(self, slot: Slot) -> Slot | None:
        return None

    def slots_from(self, instant: datetime) -> Iterator[Slot]:
        return iter(())

    def first_due_from(self, instant: datetime) -> Slot | None:
        return None

    def slot_at(self, logical_time: datetime) -> Slot:
        instant = logical_time.astimezone(UTC)
        return Slot(instant, instant, instant, instant)

    def manual(self, at: datetime) -> Slot:
        return self.slot_at(at)

    def due(self, last: Slot | None, now: datetime, *, seen_at: datetime | None = None, limit: int = DUE_LIMIT) -> Due:
        return Due((), None)

    def due_from(self, planned: Slot | None, now: datetime, *, limit: int = DUE_LIMIT) -> Due:
        return Due((), planned)


@dataclass(frozen=True, slots=True)
class ContinuousTimetable(NeverTimetable):
    """One run after the other, each for the time since the one before. Whoever starts them waits for their ends."""

    start: datetime | None
    end: datetime | None

    def first(self, now: datetime) -> Slot | None:
        return self._bounded(self.slot_at(self.start or now))

    def following(self, slot: Slot) -> Slot | None:
        return self._bounded(self.slot_at(slot.interval_end))

    def due(self, last: Slot | None, now: datetime, *, seen_at: datetime | None = None, limit: int = DUE_LIMIT) -> Due:
        return self.due_from(self.following(last) if last else self.first(seen_at or now), now, limit=limit)

    def due_from(self, planned: Slot | None, now: datetime, *, limit: int = DUE_LIMIT) -> Due:
        if planned is None or planned.run_at > now or limit < 1:
            return Due((), planned)
        if self.end is not None and now > self.end:
            return Due((), None)
        slot = Slot(planned.logical_time, now, planned.logical_time, now)
        return Due((slot,), Slot(now, now + _PAUSE, now, now))

    def _bounded(self, slot: Slot) -> Slot | None:
        return slot if self.end is None or slot.logical_time <= self.end else None
