"""The schedule that starts one run and no more."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from headrace.timetable.endless import NeverTimetable
from headrace.timetable.slots import DUE_LIMIT, Due, Slot


@dataclass(frozen=True, slots=True)
class OnceTimetable(NeverTimetable):
    """One run, for the start of the schedule, or for the moment at which the workflow is first seen."""

    start: datetime | None
    end: datetime | None

    def first(self, now: datetime) -> Slot | None:
        slot = self.slot_at(self.start or now)
        return slot if self.end is None or slot.logical_time <= self.end else None

    def due(self, last: Slot | None, now: datetime, *, seen_at: datetime | None = None, limit: int = DUE_LIMIT) -> Due:
        return self.due_from(None if last else self.first(seen_at or now), now, limit=limit)

    def due_from(self, planned: Slot | None, now: datetime, *, limit: int = DUE_LIMIT) -> Due:
        if planned is None or planned.run_at > now or limit < 1:
            return Due((), planned)
        return Due((planned,), None)
