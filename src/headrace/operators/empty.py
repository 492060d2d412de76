"""A task that does nothing: a name to hang edges on."""

from __future__ import annotations

from headrace.authoring.dag import BaseOperator, Context
from headrace.definition import NOOP


class EmptyOperator(BaseOperator):
    """Does nothing. Unless it has callbacks or outlets, the engine completes it without a process."""

    operator_name = NOOP
    ui_color = "#e8f7e4"

    def execute(self, context: Context) -> None:
        return None
