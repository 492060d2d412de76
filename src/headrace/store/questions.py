"""What tasks ask people, and the answers. Each question is answered once: it is closed with the task's move."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from headrace.definition import Question
from headrace.handoff import Fired
from headrace.state import Actor, Advance, State
from headrace.store.database import Transaction
from headrace.store.results import settle_and_flush
from headrace.store.run_graph import RunGraph
from headrace.store.sql import Sql

# The questions first: without the order SQLite, which does not know how few there are, would begin with all attempts.
_SELECT = """
    SELECT question.id, question.task_id, question.attempt_id, attempt.run_id, workflow.name, task.key, task.map_index,
           question.document, question.asked_at, question.due_at, question.closed_at, question.outcome, question.answer
    FROM question
    [[sqlite: CROSS]] JOIN task ON task.id = question.task_id
    [[sqlite: CROSS]] JOIN attempt ON attempt.id = question.attempt_id
    [[sqlite: CROSS]] JOIN workflow ON workflow.id = attempt.workflow_id
"""
LIST = Sql(
    f"""
    {_SELECT} WHERE (CAST(:attempt_id AS bigint) IS NULL OR question.attempt_id = :attempt_id)
      AND (:with_closed OR question.closed_at IS NULL) AND question.id < :below
    ORDER BY question.id DESC LIMIT :limit
    """
)
OPEN_OF_TASK = Sql(f"{_SELECT} WHERE question.task_id = :task_id AND question.closed_at IS NULL")
ANSWER = Sql(
    """
    UPDATE question SET closed_at = :now, outcome = 'answered', answer = :answer
    WHERE id = :id AND closed_at IS NULL
    """
)
_LAST = 2**62


class QuestionRow(NamedTuple):
    """A question, with whose it is and what became of it."""

    id: int
    task_id: int
    attempt_id: int
    run_id: int
    workflow: str
    key: str
    map_index: int
    document: str
    asked_at: int
    due_at: int | None
    closed_at: int | None
    outcome: str | None
    answer_json: str | None

    @property
    def task(self) -> str:
        """The task as people see it, with the index of a mapped instance."""
        return self.key if self.map_index < 0 else f"{self.key}[{self.map_index}]"

    @property
    def question(self) -> Question:
        return msgspec.json.decode(self.document, type=Question)

    @property
    def answer(self) -> dict[str, Any] | None:
        """{"chosen", "params", "by", "at"} if somebody has answered."""
        return None if self.answer_json is None else msgspec.json.decode(self.answer_json)


def list_questions(
    tx: Transaction,
    attempt_id: int | None = None,
    *,
    with_closed: bool = False,
    below: int | None = None,
    limit: int = 50,
) -> list[QuestionRow]:
    """Questions, newest first: open ones or all, of one attempt or of all, with ids below one."""
    parameters = {"attempt_id": attempt_id, "with_closed": with_closed, "below": below or _LAST, "limit": limit}
    return [QuestionRow(*row) for row in tx.run(LIST, parameters)]


def open_question(tx: Transaction, task_id: int) -> QuestionRow | None:
    """What a task waits to be told; None if it waits for no answer."""
    rows = tx.run(OPEN_OF_TASK, {"task_id": task_id})
    return QuestionRow(*rows[0]) if rows else None


def answer_question(tx: Transaction, graph: RunGraph, row: QuestionRow, answer: Mapping[str, Any]) -> bool:
    """Have the task go on with an answer. False: it waits no longer, as somebody was first or it was too late."""
    graph.lock([row.attempt_id])
    (task,) = graph.load_with_parents([row.task_id])
    document = msgspec.json.encode(dict(answer)).decode()
    # The question may be an earlier one of the same task; only the open one belongs to its present wait.
    if task.state is not State.DEFERRED or not tx.change(ANSWER, {"id": row.id, "answer": document, "now": graph.now}):
        return False
    advance = Advance(graph)
    advance.fire(task, Fired(trigger_id=0, event=dict(answer)), Actor.USER)
    settle_and_flush(advance, graph)
    tx.tell()
    return True
