"""Nothing waits for a poll: a commit that makes work for a scheduler which sleeps, or for agents, says so."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from headrace.state import INLINE_QUEUE
from headrace.store import Database, News, Outlook, RunGraph, claim_tasks, look_ahead
from headrace.store.sql import Sql
from headrace.testing.recounting import Violation

IS_LIMIT_OF_TRY = Sql("SELECT 1 FROM task WHERE due_at = :at AND agent_id IS NOT NULL LIMIT 1")
_NOTHING = Outlook(None, False, False)
_ALL = 1000
_TOLD_BY = {"default": News.WORK, INLINE_QUEUE: News.INLINE}


class WakeCheck:
    """Called after each commit, with what the commit was said to be news of.

    Left to the poll by design are time limits of tries: their agents keep them, and a scheduler only if an agent does
    not. And runs whose time has come by the clocks of others, but not by the one of who might have started them. And
    tasks for which a limit has room again: agents that such a limit has kept from taking some look by themselves.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self.seen = _NOTHING
        """What a scheduler has seen that looked after the last commit."""

    def untold(self, news: News, now: int, own_now: int) -> Outlook | None:
        """What is there for a scheduler since the last commit, if none of them was told. None: all is well.

        `own_now` is what the clock of the one who committed says.
        """
        with self._database.read() as tx:
            before, self.seen = self.seen, look_ahead(tx, now)
            if News.PLANS in news or _has_work(before, now):
                return None
            is_news = self.seen.has_nudges
            if self.seen.has_startable_runs:
                is_news = is_news or look_ahead(tx, own_now).has_startable_runs
            if _is_earlier(self.seen.next_at, before.next_at):
                is_news = is_news or not tx.run(IS_LIMIT_OF_TRY, {"at": self.seen.next_at})
        return self.seen if is_news else None

    def expect_none(self, untold: Outlook | None, who: str) -> None:
        if untold is not None:
            raise Violation(f"{who} made work for schedulers and told none of them: {untold}")

    def expect_no_work(
        self, news: News, scheduled: Collection[int], agent_ids: Sequence[int], now: int, who: str
    ) -> None:
        """Raise a Violation if one of these agents could take one of the tasks that a commit has left untold."""
        untold = [queue for queue, kind in _TOLD_BY.items() if kind not in news]
        for agent_id in agent_ids if untold else ():
            found = sorted(set(scheduled).intersection(self._claimable(agent_id, untold, now)))
            if found:
                raise Violation(f"{who} left tasks {found} for agent {agent_id} to take and told no agent")

    def _claimable(self, agent_id: int, queues: Sequence[str], now: int) -> list[int]:
        """What an agent would get of these queues that takes all it can, within every limit."""
        claimable: list[int] = []
        try:
            with self._database.begin() as tx:
                for queue in queues:
                    claims = claim_tasks(tx, RunGraph(tx, now), agent_id, queue, _ALL)
                    claimable += [claim.task.id for claim in claims]
                raise _OnlyAsked
        except _OnlyAsked:
            return claimable


class _OnlyAsked(Exception):
    """Nothing of it is to happen."""


def _has_work(outlook: Outlook, now: int) -> bool:
    """Whether a scheduler that has seen this is awake."""
    is_time = outlook.next_at is not None and outlook.next_at <= now
    return is_time or outlook.has_nudges or outlook.has_startable_runs


def _is_earlier(one: int | None, other: int | None) -> bool:
    return one is not None and (other is None or one < other)
