"""Schedules turned into logical times: cron, fixed intervals, lists, once; time zones and catch-up.

Pure arithmetic: the present is an argument, nothing is stored and nothing waits. Imports only `definition`.
"""

from headrace.timetable.asset_conditions import condition_keys, event_key, is_met, missing_keys
from headrace.timetable.manual import manual_slot, time_of_partition
from headrace.timetable.partition_mappers import mapper_for
from headrace.timetable.partitions import Contribution, KeyMistake, PartitionRules, check_key, partition_rules
from headrace.timetable.schedules import timetable_for
from headrace.timetable.slots import Due, Slot, Timetable
from headrace.timetable.walltime import next_wall_time, zone_of

__all__ = [
    "Contribution",
    "Due",
    "KeyMistake",
    "PartitionRules",
    "Slot",
    "Timetable",
    "check_key",
    "condition_keys",
    "event_key",
    "is_met",
    "manual_slot",
    "mapper_for",
    "missing_keys",
    "next_wall_time",
    "partition_rules",
    "time_of_partition",
    "timetable_for",
    "zone_of",
]
