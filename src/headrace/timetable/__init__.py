"""Schedules turned into logical times: cron, fixed intervals, lists, once; time zones and catch-up.

Pure arithmetic: the present is an argument, nothing is stored and nothing waits. Imports only `definition`.
"""

from headrace.timetable.asset_conditions import condition_keys, event_key, is_met, missing_keys
from headrace.timetable.manual import manual_slot
from headrace.timetable.schedules import timetable_for
from headrace.timetable.slots import Due, Slot, Timetable
from headrace.timetable.walltime import next_wall_time, zone_of

__all__ = [
    "Due",
    "Slot",
    "Timetable",
    "condition_keys",
    "event_key",
    "is_met",
    "manual_slot",
    "missing_keys",
    "next_wall_time",
    "timetable_for",
    "zone_of",
]
