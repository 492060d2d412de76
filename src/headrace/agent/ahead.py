"""How many tasks an agent takes before it has a slot for them, and how long those may wait for one.

While a transaction is under way no slot is given its next task, and a transaction for a few tasks costs nearly as much
as one for many. So where tries are short, an agent takes some of the next ones along. Whoever is taken ahead waits no
longer than a short try takes: if the tries before it turn out to be long, it goes back to where others can take it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

Claimed = tuple[int, int]
"""Task id and fence."""

LEAST = 8
"""An agent with fewer slots may take as many ahead as if it had these: the fewer it has, the more commits it needs."""
SHORT_SECONDS = 0.05
"""Tries that took no longer are followed by others like them, or so one hopes …"""
PATIENCE_SECONDS = 0.1
"""… and this is how long what was taken in that hope waits to see it fulfilled."""


class Ahead:
    """Told of every try that is submitted and every one that has ended, with the seconds of some clock."""

    def __init__(self, slots: int) -> None:
        self._most = 2 * max(slots, LEAST)
        self._submitted_at: dict[Claimed, float] = {}
        self._short = 0

    def submitted(self, claims: Iterable[Claimed], now: float) -> None:
        """These are with the executor, begun or not."""
        self._submitted_at.update((claimed, now) for claimed in claims)

    def ended(self, claims: Iterable[Claimed], now: float) -> None:
        """These have ended since the last time, or none. What was not submitted here is passed over.

        While all are short, each batch is followed by more; how small it is says little. With others among them the
        number falls to those that were short, by halves at most, because a small batch is often luck. It begins anew
        when none was, and after a rest: what comes then may be of another kind.
        """
        is_idle = not self._submitted_at
        times = [self._submitted_at.pop(claimed) for claimed in claims if claimed in self._submitted_at]
        short = sum(now - at <= SHORT_SECONDS for at in times)
        if is_idle or (times and not short):
            self._short = 0
        elif short == len(times):
            self._short = min(self._short + short, self._most)
        else:
            self._short = min(max(short, self._short // 2), self._most)

    def room(self, waiting: Sequence[Claimed]) -> int:
        """How many more may be taken beyond the free slots, with so many waiting for a slot already."""
        return max(0, self._short - len(waiting))

    def seconds_left(self, waiting: Sequence[Claimed], now: float) -> float:
        """How long all of these may still wait for a slot. Zero: the first of them is to be handed back."""
        since = min((self._submitted_at.get(claimed, now) for claimed in waiting), default=None)
        return float("inf") if since is None else max(0.0, since + PATIENCE_SECONDS - now)
