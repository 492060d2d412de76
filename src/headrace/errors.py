"""Every error that Headrace raises on purpose.

    HeadraceError                 something a person or a program can act on
    ├── DefinitionError           a workflow file says something that cannot be run
    │   ├── CycleError            tasks that wait for each other
    │   ├── DuplicateTaskError    two tasks with one key
    │   └── DanglingEdgeError     a task that waits for one that does not exist
    ├── LoadError                 a workflow file that could not be loaded at all
    ├── NotFoundError             a workflow, run or task that is not there
    ├── UsageError                an option or a value that makes no sense
    ├── SettingsError             a setting that is unknown or has a wrong value
    ├── SecretError               a secret that can be neither sealed nor opened here
    ├── StateError                a request that the current state does not allow
    │   └── IllegalMoveError      a task state change that is not in the table of moves
    └── StoreError                the database said no
        ├── StoreUnreachableError the database could not be reached
        ├── SchemaError           the schema is older or newer than this version needs
        │   └── NoSchemaError     there is none: the database is not there, is empty, or is somebody else's
        └── ConflictError         somebody else changed the row first; the caller tries again

Messages are one sentence in lower case without a final period: what failed, on which named thing, where, what was
expected and found. A hint, on its own line, says what to do next.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class HeadraceError(Exception):
    """A sentence for people, with an optional hint and the place in the user's file."""

    exit_code = 1

    def __init__(self, message: str, *, hint: str | None = None, file: str | None = None, line: int | None = None):
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.file = file
        self.line = line

    @property
    def place(self) -> str | None:
        """`file:line`, as editors understand it."""
        if self.file is None:
            return None
        return self.file if self.line is None else f"{self.file}:{self.line}"

    def __str__(self) -> str:
        text = self.message if self.place is None else f"{self.message} (`{self.place}`)"
        return text if self.hint is None else f"{text}\nhint: {self.hint}"


class DefinitionError(HeadraceError):
    exit_code = 2


class CycleError(DefinitionError):
    pass


class DuplicateTaskError(DefinitionError):
    pass


class DanglingEdgeError(DefinitionError):
    pass


class LoadError(HeadraceError):
    """`detail` holds the user's own traceback, cut to the frames in the user's files."""

    exit_code = 2

    def __init__(
        self,
        message: str,
        *,
        hint: str | None = None,
        file: str | None = None,
        line: int | None = None,
        detail: str | None = None,
    ):
        super().__init__(message, hint=hint, file=file, line=line)
        self.detail = detail


class NotFoundError(HeadraceError):
    exit_code = 2


class UsageError(HeadraceError):
    exit_code = 2


class SettingsError(HeadraceError):
    exit_code = 2


class SecretError(HeadraceError):
    pass


class StateError(HeadraceError):
    pass


class IllegalMoveError(StateError):
    pass


class StoreError(HeadraceError):
    pass


class StoreUnreachableError(StoreError):
    exit_code = 2


class StoreLockedError(StoreError):
    """Somebody else keeps a lock for longer than this process wants to wait."""

    exit_code = 2


class SchemaError(StoreError):
    exit_code = 2


class NoSchemaError(SchemaError):
    pass


class ConflictError(StoreError):
    pass


def nearest(name: str, candidates: Iterable[str]) -> str | None:
    """The candidate that was probably meant, or None if nothing is close."""
    matches = difflib.get_close_matches(name, list(candidates), n=1, cutoff=0.6)
    return matches[0] if matches else None


def did_you_mean(name: str, candidates: Iterable[str]) -> str | None:
    """A hint that suggests the nearest candidate, or None."""
    match = nearest(name, candidates)
    return None if match is None else f"did you mean `{match}`?"
