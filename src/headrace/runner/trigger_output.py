"""What triggers print and log: whole lines, each sent to the log of the task that waits."""

from __future__ import annotations

import io
import logging
import sys
from typing import TextIO

from headrace.handoff import LineFormatter, Logged
from headrace.runner.trigger_line import TriggerLine, current_trigger

_LONGEST_LINE = 65_536


class TriggerOutput(io.TextIOBase):
    """Stands in place of `sys.stdout` and `sys.stderr`. What belongs to no trigger goes to the process's own output."""

    encoding = "utf-8"

    def __init__(self, line: TriggerLine, otherwise: TextIO) -> None:
        self._line = line
        self._otherwise = otherwise
        self._unfinished: dict[int, str] = {}

    def write(self, text: str) -> int:
        """Send the lines that are complete now, keep the beginning of the next one."""
        trigger_id = current_trigger.get()
        if trigger_id == 0:
            return self._otherwise.write(text)
        whole, newline, rest = (self._unfinished.pop(trigger_id, "") + text).rpartition("\n")
        if len(rest) > _LONGEST_LINE:
            whole, newline, rest = rest, "\n", ""
        if rest:
            self._unfinished[trigger_id] = rest
        if newline:
            self._line.send(Logged(trigger_id=trigger_id, text=whole + newline))
        return len(text)

    def flush(self) -> None:
        if current_trigger.get() == 0:
            self._otherwise.flush()

    def finish(self, trigger_id: int) -> None:
        """Send what a trigger that is over left without a line's end."""
        if rest := self._unfinished.pop(trigger_id, ""):
            self._line.send(Logged(trigger_id=trigger_id, text=f"{rest}\n"))

    def writable(self) -> bool:
        return True


class _Handler(logging.StreamHandler[TextIO]):
    """Writes to what `sys.stderr` is at the moment."""

    def __init__(self) -> None:
        logging.Handler.__init__(self)
        self.setFormatter(LineFormatter())

    @property
    def stream(self) -> TextIO:  # type: ignore[override]
        return sys.stderr


def redirect_output(line: TriggerLine) -> TriggerOutput:
    """Have printed and logged lines go where they belong from now on."""
    output = TriggerOutput(line, sys.__stderr__ or sys.stderr)
    sys.stdout = sys.stderr = output
    root = logging.getLogger()
    root.addHandler(_Handler())
    root.setLevel(logging.INFO)
    return output
