"""When an agent leaves its share of the tasks to another one of the same machine.

Where the processors are the limit, two agents of one machine do no more than one: they only need more transactions for
the same results, and more memory in the same caches. So the later one takes nothing for as long as the earlier one
keeps the processors busy by itself, and takes part again as soon as it does not.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from headrace.agent.processors import Processors
from headrace.store import Pace

BUSY_SHARE = 0.2
"""The processors count as busy while they are idle for less than this share of the time."""
LOOK_SECONDS = 0.03
"""So often the processors are looked at under load. A kernel counts in hundredths of a second."""
MOMENT_SECONDS = 0.1
"""So long tasks are left to others before that is looked at again. Those that take longer are no short ones."""
IN_VAIN_SECONDS = 2.0
"""How long to take part, once to give way has left processors idle or tasks lying, before it is tried again."""


class GivingWay:
    """Asked again and again, it looks when it is time to."""

    def __init__(self, processors: Processors) -> None:
        self._processors = processors
        self._next_at = 0.0
        self._did_work = False
        """Whether the others had something to do when they were looked at last."""
        self.is_on = False
        """Whether to take nothing for the time being."""
        self._has_news = threading.Event()
        self._is_quiet = False
        """Whether nobody had anything to do, so that there is nothing to look at before the next news."""

    def hear(self) -> None:
        """There is something to do for somebody. Any thread may call it."""
        self._has_news.set()

    def look(self, now: float, ask: Callable[[], Sequence[Pace]]) -> None:
        """Decide anew if it is time. `ask` tells of the agents that tasks may be left to."""
        if now < self._next_at:
            return
        had_news = self._has_news.is_set()
        self._has_news.clear()
        is_busy = self._processors.idle_share() < BUSY_SHARE
        others = ask() if is_busy or self.is_on else ()
        able = [one for one in others if one.short_slots >= self._processors.count]
        gives_way = is_busy and not all(one.leaves_work for one in able)
        do_work = any(one.new for one in others)
        if gives_way:
            seconds = MOMENT_SECONDS
        elif self.is_on and self._was_in_vain(is_busy, able, do_work):
            seconds = IN_VAIN_SECONDS
        else:
            seconds = LOOK_SECONDS
        self.is_on, self._did_work, self._next_at = gives_way, do_work, now + seconds
        self._is_quiet = not (had_news or do_work or any(one.is_work_left for one in others))

    def _was_in_vain(self, is_busy: bool, able: Sequence[Pace], do_work: bool) -> bool:
        """Whether those who had slots left tasks lying, or processors idle although they had work all the time."""
        return bool(able) if is_busy else self._did_work and do_work

    def stop(self) -> None:
        """There is nobody to leave anything to."""
        self.is_on = False

    def seconds_left(self, now: float) -> float:
        """Until it is to be looked at again whether to give way."""
        if not self.is_on or (self._is_quiet and not self._has_news.is_set()):
            return float("inf")
        return max(0.0, self._next_at - now)
