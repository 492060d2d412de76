"""Which bytes a warm parent loads: a run keeps the revision that it began with, whatever becomes of the file."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, NamedTuple

from headrace.handoff import Channel, Load, TaskRequest, TaskResult, content_digest
from headrace.runner.child import Run

SAVED_ONE = "the file changed since this run's revision was saved; running the saved one"
PRESENT_ONE = (
    "warning: the file changed since this run's revision was saved, which was not kept; running the present one"
)


class Pinned(NamedTuple):
    """The bytes to load, and a line for the log of each try if they are not simply those of the file."""

    content: bytes | None
    """None: the file cannot be read, or no revision is asked for."""
    notice: str = ""


def pinned(message: Load) -> Pinned:
    """The file's bytes if they are those of the revision, otherwise the kept ones, otherwise the file's after all."""
    source = message.source
    if not source.revision:
        return Pinned(None)
    present = _read(Path(source.root, source.file))
    if present is not None and content_digest(present) == source.revision:
        return Pinned(present)
    if message.content is not None:
        return Pinned(message.content, SAVED_ONE)
    return Pinned(present, PRESENT_ONE)


def announcing(run: Run, notice: str) -> Run:
    """The same task runner, which writes a line to the try's log first."""

    def announce_and_run(file: Any, request: TaskRequest, channel: Channel) -> TaskResult:
        # Not through logging, whose level and handlers are the user's to change.
        print(notice, file=sys.stderr, flush=True)
        return run(file, request, channel)

    return announce_and_run if notice else run


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except OSError:
        return None
