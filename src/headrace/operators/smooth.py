"""A task that does nothing, with pleasure."""

from __future__ import annotations

from headrace.authoring.dag import BaseOperator, Context


class SmoothOperator(BaseOperator):
    """Says where a well-known song is to be found."""

    operator_name = "smooth"
    ui_color = "#e8f7e4"

    def execute(self, context: Context) -> None:
        self.log.info("for the music, see https://www.youtube.com/watch?v=4TYv2PhG89A")
