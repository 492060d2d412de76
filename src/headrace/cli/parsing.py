"""Loads a file in a child process while this one does something else."""

from __future__ import annotations

import os
import threading
from pathlib import Path

from headrace.authoring import language_of
from headrace.definition import Workflow
from headrace.errors import LoadError, NotFoundError, UsageError, did_you_mean
from headrace.handoff import Source
from headrace.projects import ParsedFile, content_digest, parse_file
from headrace.projects.parsing import Answers
from headrace.settings import ParserSettings

_WORKFLOW_SUFFIX = ".dig"
"""Of the files that have the name of their workflow."""


class Parsing:
    """Begins at once; `result` waits for the end."""

    def __init__(
        self, file: str, settings: ParserSettings, project: str | None = None, answers: Answers | None = None
    ) -> None:
        """`project` is the folder that the file belongs to; without it, the one that the file is in.

        `answers` has what the file asks for while it is loaded.
        """
        self._answers = answers
        root = None if project is None else Path(os.path.abspath(project))
        path = _found(file, root)
        if not path.is_file():
            what = "is a folder" if path.is_dir() else "does not exist"
            hint = f"`headrace standalone {file}` runs a folder of workflows" if path.is_dir() else _similar(path)
            raise LoadError(f"expected a workflow file, but `{file}` {what}", hint=hint)
        self.root = path.parent if root is None else root
        self._file = path.relative_to(self.root).as_posix()
        self._settings = settings
        self._parsed: ParsedFile | None = None
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._parse, name="headrace-parse", daemon=True)
        self._thread.start()

    @property
    def source(self) -> Source:
        """Where the task processes will find the file, as long as it does not change."""
        revision = content_digest((self.root / self._file).read_bytes())
        return Source(root=str(self.root), file=self._file, language=language_of(self._file).name, revision=revision)

    def result(self) -> ParsedFile:
        """The file with its workflows. Raises LoadError if it cannot be loaded or holds none."""
        self._thread.join()
        if self._failure is not None:
            raise self._failure
        assert self._parsed is not None
        error = self._parsed.error
        if error is not None:
            raise LoadError(
                error.message, hint=error.hint, file=error.file or None, line=error.line, detail=error.detail or None
            )
        if not self._parsed.workflows:
            raise LoadError(
                f"`{self._file}` defines no workflow",
                hint="create a DAG at the top level of the file, or call your `@dag` function there",
            )
        return self._parsed

    def _parse(self) -> None:
        try:
            self._parsed = parse_file(
                self.root,
                self._file,
                timeout_seconds=self._settings.timeout_seconds,
                memory_mb=self._settings.memory_mb,
                answers=self._answers,
            )
        except BaseException as error:
            self._failure = error


def _found(file: str, root: Path | None) -> Path:
    """A file as people name it; below the project's folder, if that is given."""
    if root is None:
        return Path(os.path.abspath(found_file(file, Path.cwd())))
    if not root.is_dir():
        raise LoadError(f"expected `--project` to be a folder, but `{root}` is none")
    path = Path(os.path.abspath(found_file(file, root)))
    return path if path.is_relative_to(root) else root / file


def found_file(file: str, root: Path) -> Path:
    """A file as people name it: relative to its project or to where they are, perhaps without its suffix."""
    names = (file, f"{file}{_WORKFLOW_SUFFIX}")
    paths = [path for name in names for path in (root / name, Path(name))]
    return next((path for path in paths if path.is_file()), Path(file))


def choose(parsed: ParsedFile, name: str | None) -> Workflow:
    """The workflow that was named, or the only one."""
    names = [workflow.name for workflow in parsed.workflows]
    listed = ", ".join(f"`{one}`" for one in names)
    if name is None:
        if len(names) > 1:
            raise UsageError(f"`{parsed.file}` defines several workflows: {listed}", hint="name the one to run")
        return parsed.workflows[0]
    for workflow in parsed.workflows:
        if workflow.name == name:
            return workflow
    hint = did_you_mean(name, names) or f"it defines {listed}"
    raise NotFoundError(f"`{parsed.file}` defines no workflow `{name}`", hint=hint)


def _similar(path: Path) -> str | None:
    folder = path.parent
    if not folder.is_dir():
        return None
    return did_you_mean(path.name, [one.name for one in folder.iterdir() if one.suffix in (".py", ".dig")])
