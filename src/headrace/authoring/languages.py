"""Which front end reads which file. Loaders are named, not imported: a process pays only for the language it uses."""

from __future__ import annotations

import importlib
from datetime import datetime
from pathlib import Path
from typing import NamedTuple, Protocol, runtime_checkable

from headrace.definition import Data, Workflow
from headrace.errors import LoadError


class LoadedFile(Protocol):
    """A workflow file after loading."""

    @property
    def workflows(self) -> tuple[Workflow, ...]:
        """The compiled and checked workflows of the file, in file order."""
        ...


class SlotQuestion(Data, frozen=True, kw_only=True):
    """When is a workflow due whose times only user code can tell?"""

    workflow: str
    last_start: datetime | None = None
    last_end: datetime | None = None
    """The period of the last run that its schedule started."""
    manual_at: datetime | None = None
    """If given, what is asked for is the period of a run that a person starts at this time."""


class ToldSlot(Data, frozen=True, kw_only=True):
    """What user code has answered."""

    logical_time: datetime
    run_at: datetime
    interval_start: datetime
    interval_end: datetime


@runtime_checkable
class TellsSlots(Protocol):
    """A workflow file that knows times which nobody else can compute."""

    def tell_slot(self, question: SlotQuestion) -> ToldSlot | None:
        """The answer; None: there is no more run."""
        ...


class Language(NamedTuple):
    name: str
    suffix: str
    loader: str
    """`module:function`, called with the project's folder, the file's path relative to it, and its bytes or None."""
    keeps_sessions: bool = False
    """Whether a local run for the same time goes on where the one before stopped."""
    takes_texts: bool = False
    """Whether a parameter that was typed as `KEY=VALUE` is a text, whatever it looks like, and its name has dots for
    maps in maps. Otherwise JSON is taken as such."""


LANGUAGES = (
    Language("python", ".py", "headrace.authoring.dag.loading:load_dag_file"),
    Language("python", ".zip", "headrace.authoring.dag.loading:load_dag_file"),
    Language("dig", ".dig", "headrace.authoring.dig.loading:load_dig_file", keeps_sessions=True, takes_texts=True),
)


def suffixes() -> tuple[str, ...]:
    """The suffixes of files that may hold workflows."""
    return tuple(language.suffix for language in LANGUAGES)


def language_of(file: str | Path) -> Language:
    """The language of a file, by its suffix."""
    suffix = Path(file).suffix
    for language in LANGUAGES:
        if language.suffix == suffix:
            return language
    raise LoadError(
        f"`{file}` is not a workflow file: expected a name that ends in {' or '.join(suffixes())}", file=str(file)
    )


def takes_texts(name: str) -> bool:
    """Whether workflows of the language with this name take parameters as texts."""
    return any(language.takes_texts for language in LANGUAGES if language.name == name)


def load_file(root: Path, file: str, content: bytes | None = None) -> LoadedFile:
    """Load one file with its language's front end. This executes user code: call it only in a child process.

    With `content`, these bytes are loaded as if the file held them; what it imports or includes still comes from disk.
    """
    module_name, function_name = language_of(file).loader.split(":")
    loaded: LoadedFile = getattr(importlib.import_module(module_name), function_name)(root, file, content)
    return loaded
