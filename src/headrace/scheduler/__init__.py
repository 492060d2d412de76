"""What time moves: due schedules, retries, deadlines, lost agents, old history. Small services, one file each.

Every service may run in any number of processes at once, so that no leader is needed. It may import `store`, `state`,
`timetable`, `processes` and `clock`.
"""

from headrace.scheduler.age_keeper import AgeKeeper
from headrace.scheduler.beats import Beat, beats_of
from headrace.scheduler.deadline_keeper import DeadlineKeeper
from headrace.scheduler.loop import Scheduler
from headrace.scheduler.options import SchedulerOptions
from headrace.scheduler.past_follower import PastFollower
from headrace.scheduler.pruner import Pruner
from headrace.scheduler.rescuer import Rescuer
from headrace.scheduler.reviver import Reviver
from headrace.scheduler.run_activator import RunActivator
from headrace.scheduler.run_starter import RunStarter
from headrace.scheduler.service import Service
from headrace.scheduler.waker import Waker
from headrace.scheduler.watcher_keeper import WatcherKeeper

__all__ = [
    "AgeKeeper",
    "Beat",
    "DeadlineKeeper",
    "PastFollower",
    "Pruner",
    "Rescuer",
    "Reviver",
    "RunActivator",
    "RunStarter",
    "Scheduler",
    "SchedulerOptions",
    "Service",
    "Waker",
    "WatcherKeeper",
    "beats_of",
]
