"""Groups whose number of tries only the run can know: when one has failed, a task of it says how often it is tried.

The question is a child that does not decide, asked anew for each generation. Its answer counts from where the series of
tries began, so that a clear grants the whole number again.
"""

from __future__ import annotations

import msgspec

from headrace.definition import Retry
from headrace.state.agenda import Agenda
from headrace.state.retry import retry_delay_seconds
from headrace.state.task import State, Task

_TRIES_BEFORE = "tries_before"


class RetryQuestions:
    """The questions of one transaction, and the answers until the groups that asked are decided."""

    def __init__(self, agenda: Agenda) -> None:
        self._agenda = agenda
        self._answers: dict[int, Retry] = {}

    def ask(self, group: Task) -> bool:
        """Have a failed group's question asked. False if it has none, or has its answer."""
        question = self._agenda.graph.node(group).retry_question
        if question is None:
            return False
        asked = [child for child in self._agenda.graph.children([group.id]) if child.key == question.key]
        if not asked:
            self._agenda.grow(group, [question], grown_by=group.id)
            self._agenda.open_children(group)
            return True
        self._forget_answered(group, asked[0])
        return False

    def _forget_answered(self, group: Task, asked: Task) -> None:
        # A question that failed stays, for people to see why the group is not tried again.
        if asked.state is State.SUCCESS:
            asked.is_superseded = True
            self._agenda.graph.touch(asked)
            group.children -= 1

    def answer(self, question: Task, retry: Retry) -> None:
        """Give the group above as many tries as it has asked for."""
        (group,) = self._agenda.graph.tasks([question.parent_id or 0])
        kept = msgspec.json.decode(group.poll_state) if group.poll_state else {_TRIES_BEFORE: group.max_tries}
        group.poll_state = msgspec.json.encode(kept).decode()
        group.max_tries = kept[_TRIES_BEFORE] + retry.limit
        self._answers[group.id] = retry

    def wait_seconds(self, group: Task) -> float | None:
        """How long a group waits for its next try, if that was its question."""
        retry = self._answers.get(group.id)
        return None if retry is None else retry_delay_seconds(retry, group.try_number, group.name)
