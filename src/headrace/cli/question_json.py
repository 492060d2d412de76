"""Questions as JSON shows them."""

from __future__ import annotations

import msgspec

from headrace.cli.printing import instant
from headrace.store import QuestionRow


def describe_question(row: QuestionRow) -> dict[str, object]:
    question = row.question
    return {
        "question_id": row.id,
        "workflow": row.workflow,
        "run_id": row.run_id,
        "task": row.task,
        "subject": question.subject,
        "body": question.body,
        "options": list(question.options),
        "is_multiple": question.is_multiple,
        "defaults": None if question.defaults is None else list(question.defaults),
        "params": question.params,
        "param_schemas": question.param_schemas,
        "respondents": [msgspec.to_builtins(one) for one in question.respondents],
        "asked_at": instant(row.asked_at),
        "due_at": instant(row.due_at),
        "closed_at": instant(row.closed_at),
        "outcome": row.outcome,
        "answer": row.answer,
    }
