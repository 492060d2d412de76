"""When an agent leaves its share of the tasks to another one of the same machine.

Where the processors are the limit, two agents of one machine do no more than one: they only need more transactions for
the same results, and more memory in the same caches. So the later one takes nothing for as long as the earlier one
keeps the processors busy by itself, and takes part again as soon as it does not.
"""

from __future__ import annotations

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
        self.is_on = False
        """Whether to take nothing for the time being."""

    def look(self, now: float, ask: Callable[[], Sequence[Pace]]) -> None:
        """Decide anew if it is time. `ask` tells of the agents that tasks may be left to."""
        if now < self._next_at:
            return
        is_busy = self._processors.idle_share() < BUSY_SHARE
        others = ask() if is_busy or self.is_on else ()
        was_on, self.is_on = self.is_on, is_busy and any(one.keeps_up(self._processors.count) for one in others)
        was_in_vain = was_on and not self.is_on and _are_too_slow(others, is_busy)
        self._next_at = now + (MOMENT_SECONDS if self.is_on else IN_VAIN_SECONDS if was_in_vain else LOOK_SECONDS)

    def stop(self) -> None:
        """There is nobody to leave anything to."""
        self.is_on = False

    def seconds_left(self, now: float) -> float:
        """Until it is looked at again whether to give way."""
        return max(0.0, self._next_at - now) if self.is_on else float("inf")


def _are_too_slow(others: Sequence[Pace], is_busy: bool) -> bool:
    """Whether they did less than there was to do; otherwise it was done, or they have long tasks now."""
    do_something = any(one.new for one in others)
    return not do_something if is_busy else do_something
