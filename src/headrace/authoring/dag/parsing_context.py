"""What files ask that build many DAGs: for which of them they are being loaded."""

from __future__ import annotations

from typing import NamedTuple


class ParsingContext(NamedTuple):
    """None: all of them are wanted."""

    dag_id: str | None = None
    task_id: str | None = None


def get_parsing_context() -> ParsingContext:
    """Always all: one process loads a file once and then runs tasks of any of its DAGs."""
    return ParsingContext()
