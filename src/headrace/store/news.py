"""What a commit is news of, and so who has to look."""

from __future__ import annotations

from enum import IntFlag


class News(IntFlag):
    """May be joined; most commits that are news at all are of every kind."""

    WORK = 1
    """Tasks or errands that an agent with a free slot may take."""
    STOP = 2
    """Something that runs somewhere is not to go on."""
    PLANS = 4
    """Everything else that somebody has to act on: runs that wait, timers, schedules, definitions."""
    ENDS = 8
    """Runs have ended, and whatever waited for a place among those of their workflow has it, or an errand has: somebody
    may wait for all that belongs to a run."""
    TRIGGERS = 16
    """Triggers that a triggerer may run, or is to run no more."""
    INLINE = 32
    """Tasks without code, which need no slot."""
    ALL = WORK | STOP | PLANS | ENDS | TRIGGERS | INLINE


NOTHING = News(0)
