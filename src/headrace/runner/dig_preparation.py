"""What the warm parent of a `.dig` file does once, so that its children need not: import libraries, load moment.

The modules of the project itself are not run here: each `py>` task runs them anew, as a process of its own would, so
that what they do when they are imported happens in a try and at its time. What they import is found by reading them.
"""

from __future__ import annotations

import ast
import contextlib
import importlib
import json
import sys
from collections.abc import Iterator
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from importlib.util import find_spec
from pathlib import Path
from types import CodeType
from typing import Any

from headrace.authoring.dig import FAILURE_ALERT, DigFile, read_called_workflow
from headrace.definition import NOOP, Node
from headrace.errors import HeadraceError
from headrace.operators.dig import REHEARSED_MODULE, find_operator


class Survey:
    """What the tasks of a file, and of the files that it calls, will need as far as that is written down."""

    def __init__(self, file: DigFile) -> None:
        self.commands: set[tuple[Path, str]] = set()
        """Folders and `py>` commands."""
        self.operators: set[str] = set()
        self.text = ""
        """Everything that may hold an expression."""
        self.has_environments = False
        """Some `py>` task sets variables, which libraries may read when they are imported."""
        self.root = file.root
        self._called: set[str] = set()
        for workflow in file.workflows:
            for node in workflow.nodes:
                self._see_node(node)

    def _see_node(self, node: Node) -> None:
        self.text += json.dumps([node.config, node.export])
        if node.operator != NOOP:
            self._see_operator(node.operator, node.config.get("_command"), node.config, self.root)
        self._see(node.config, self.root)
        for handler in node.on_failure:
            # The alert can send mail and requests. A workflow that goes well should not have all that in memory.
            if not handler.key.endswith(FAILURE_ALERT):
                self._see_node(handler)

    def _see(self, value: Any, folder: Path) -> None:
        if isinstance(value, dict):
            for key, item in value.items():
                if key.endswith(">"):
                    self._see_operator(key.removesuffix(">"), item, value, folder)
                self._see(item, folder)
        elif isinstance(value, list):
            for item in value:
                self._see(item, folder)

    def _see_operator(self, operator: str, command: Any, body: dict[str, Any], folder: Path) -> None:
        self.operators.add(operator)
        if not isinstance(command, str) or "${" in command:
            return
        if operator == "py" and "python" not in body:
            self.commands.add((folder, command))
            self.has_environments |= "_env" in body
        elif operator == "call":
            self._see_called(folder / (command if command.endswith(".dig") else f"{command}.dig"))

    def _see_called(self, path: Path) -> None:
        path = path.resolve()
        if str(path) in self._called or not path.is_relative_to(self.root):
            return
        self._called.add(str(path))
        # A mistake in a called file is the business of the task that calls it.
        with contextlib.suppress(HeadraceError):
            body = read_called_workflow(self.root, path.relative_to(self.root).as_posix())
            self.text += json.dumps(body)
            self._see(body, path.parent)


def import_operators(survey: Survey) -> None:
    """Import the modules behind the operators that come with us or with packages; those of the project run later."""
    for name in sorted(survey.operators):
        with contextlib.suppress(Exception):
            find_operator(name)


def import_libraries(survey: Survey) -> None:
    """Import what the modules of `py>` tasks import from outside of the project. Failures are left to the tasks."""
    if survey.has_environments:
        return
    for name in sorted(_libraries(survey)):
        with contextlib.suppress(Exception, SystemExit):
            importlib.import_module(name)


def find_modules(survey: Survey) -> None:
    """Find the modules of `py>` tasks and compile them, so that their processes need only run them."""
    # What a rehearsal imports is found in the same way, so that it does what a task does and not more.
    found: dict[str, list[ModuleSpec | None]] = {REHEARSED_MODULE: [_with_code(find_spec(REHEARSED_MODULE))]}
    for folder, command in survey.commands:
        name = command.partition(".")[0]
        spec = PathFinder.find_spec(name, [*sys.path, str(folder), str(survey.root)])
        found.setdefault(name, []).append(_with_code(spec))
    sys.meta_path.insert(0, FoundModules(found))


def _with_code(spec: ModuleSpec | None) -> ModuleSpec | None:
    if spec is not None and type(spec.loader) is SourceFileLoader:
        # A mistake in the file is the business of the task that runs it.
        with contextlib.suppress(Exception):
            spec.loader = ReadyLoader(spec.loader.name, spec.loader.path)
    return spec


class ReadyLoader(SourceFileLoader):
    """Has a module's code ready, for as long as its file does not change. Running the code is left to each task."""

    def __init__(self, name: str, path: str) -> None:
        super().__init__(name, path)
        self._stats = self.path_stats(path)
        self._code = super().get_code(name)

    def get_code(self, fullname: str) -> CodeType | None:
        return self._code if self.path_stats(self.path) == self._stats else super().get_code(fullname)


class FoundModules:
    """A finder for modules whose place is known, unless tasks in several folders mean different ones by a name."""

    def __init__(self, found: dict[str, list[ModuleSpec | None]]) -> None:
        self._specs = {
            name: specs[0] for name, specs in found.items() if len({spec and spec.origin for spec in specs}) == 1
        }

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        return self._specs.get(name)


def _libraries(survey: Survey) -> set[str]:
    found: set[str] = set()
    seen: set[Path] = set()
    pending = [(folder, command.rpartition(".")[0]) for folder, command in survey.commands]
    while pending:
        folder, name = pending.pop()
        for path in _files(folder, name):
            if path not in seen:
                seen.add(path)
                libraries = {one for one in _imports(path) if _is_library(one, survey.root)}
                pending += [(folder, one) for one in _imports(path) if one not in libraries]
                found |= libraries
    return found


def _files(folder: Path, name: str) -> Iterator[Path]:
    """The files of a module of the project, its packages first; a class in a module is looked for like a module."""
    path = folder
    for part in name.split("."):
        path = path / part
        yield from (one for one in (path / "__init__.py", path.with_suffix(".py")) if one.is_file())


def _imports(path: Path) -> list[str]:
    try:
        tree = ast.parse(path.read_bytes())
    except (OSError, SyntaxError, ValueError):
        return []
    names: list[str] = []
    for statement in tree.body:
        if isinstance(statement, ast.Import):
            names += [alias.name for alias in statement.names]
        elif isinstance(statement, ast.ImportFrom) and statement.module and not statement.level:
            names.append(statement.module)
    return names


def _is_library(name: str, root: Path) -> bool:
    """Whether a module is found outside of the project. `digdag` is ours and different in each task."""
    top = name.partition(".")[0]
    try:
        spec = None if top == "digdag" else find_spec(top)
    except (ImportError, ValueError):
        return False
    # The project's folder may be on the path already, if that is where the command was given.
    return spec is not None and not (spec.origin and Path(spec.origin).resolve().is_relative_to(root))
