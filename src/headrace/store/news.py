"""What a commit is news of, and so who has to look."""

from __future__ import annotations

from enum import IntFlag


class News(IntFlag):
    """May be joined; most commits that are news at all are of every kind."""

    WORK = 1
    """Tasks or errands that an agent may take."""
    STOP = 2
    """Something that runs somewhere is not to go on."""
    PLANS = 4
    """Everything else: runs that wait or have ended, timers, schedules, definitions."""
    ALL = WORK | STOP | PLANS


NOTHING = News(0)
