"""`headrace questions`."""

from __future__ import annotations

import click

from headrace.actions.questions import show_questions
from headrace.actions.wording import instant as shown
from headrace.cli.opening import opened
from headrace.cli.options import json_option, limit_option, store_option
from headrace.cli.printing import print_json, print_table
from headrace.cli.question_json import describe_question
from headrace.store import QuestionRow


@click.command("questions")
@click.argument("run", required=False)
@click.option("--all", "with_closed", is_flag=True, help="Also those that were answered, or are not asked any more.")
@limit_option
@click.option("--before", type=int, metavar="ID", help="Begin before this question: the `next` of the page before.")
@json_option
@store_option
def command(run: str | None, with_closed: bool, limit: int, before: int | None, as_json: bool, url: str | None) -> None:
    """List what tasks, of RUN or of all runs, ask people and wait to be told, newest first."""
    with opened(url, may_be_private=True) as here:
        rows = show_questions(here.store, run, with_closed=with_closed, before=before, limit=limit)
    if as_json:
        following = rows[-1].id if len(rows) == limit else None
        print_json({"questions": [describe_question(row) for row in rows], "next": following})
        return
    headers = ("question", "workflow", "run", "task", "subject", "options", "asked", "until", "answer")
    print_table(headers, [_cells(row) for row in rows])


def _cells(row: QuestionRow) -> tuple[object, ...]:
    question = row.question
    until = "" if row.due_at is None else shown(row.due_at)
    asked = (row.id, row.workflow, row.run_id, row.task, question.subject.strip(), ", ".join(question.options))
    return (*asked, shown(row.asked_at), until, _answer(row))


def _answer(row: QuestionRow) -> str:
    if row.answer is None:
        return "" if row.outcome is None else row.outcome.replace("_", " ")
    by = row.answer["by"]
    return f"{', '.join(row.answer['chosen'])} ({by['name']})"
