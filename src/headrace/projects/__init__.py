"""Projects on disk: which files may hold workflows, loading them in child processes, noticing changes.

It imports `authoring`, `definition` and `handoff`. The parse processes import this package too, so what needs the
database is not imported here but by its own name.
"""

from headrace.handoff import content_digest
from headrace.projects.files import Discovery, find_files
from headrace.projects.outcome import ParsedFile, SourceError
from headrace.projects.parsing import ParsePool, parse_file, parse_files
from headrace.projects.watching import Changes, watch

__all__ = [
    "Changes",
    "Discovery",
    "ParsePool",
    "ParsedFile",
    "SourceError",
    "content_digest",
    "find_files",
    "parse_file",
    "parse_files",
    "watch",
]
