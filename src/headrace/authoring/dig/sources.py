"""Reads a `.dig` file with everything it includes."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from headrace.authoring.dig.yaml_dialect import Include, Section, parse
from headrace.definition import Place
from headrace.errors import DefinitionError, LoadError


def read_source(root: Path, file: str, content: bytes | None = None) -> Section:
    """The map that a file of the project holds, with its includes resolved. `file` is relative to `root`.

    With `content`, these are the file's bytes, whatever is on disk.
    """
    return _Source(root.resolve()).read(file, (), content)


class _Source:
    def __init__(self, root: Path) -> None:
        self._root = root

    def read(self, file: str, including: tuple[str, ...], content: bytes | None = None) -> Section:
        value = parse(_read_text(self._root / file, file, content), file)
        if not isinstance(value, Section):
            found = "nothing" if value is None else "a list" if isinstance(value, list) else "a single value"
            hint = "a workflow has at least one `+task`" if value is None and not including else None
            raise DefinitionError(f"expected `{file}` to hold a map, got: {found}", hint=hint, file=file, line=1)
        resolved = self._resolve(value, file, (*including, file))
        assert isinstance(resolved, Section)
        return resolved

    def _resolve(self, value: Any, file: str, including: tuple[str, ...]) -> Any:
        if isinstance(value, list):
            return [self._resolve(item, file, including) for item in value]
        if not isinstance(value, Section):
            return value
        resolved = Section(value.place)
        for key, item in value.items():
            if isinstance(item, Include):
                _merge(resolved, self._included(item, file, including))
            else:
                resolved.put(key, self._resolve(item, file, including), value.places[key])
        return resolved

    def _included(self, include: Include, file: str, including: tuple[str, ...]) -> Section:
        target = self._target(include, file)
        if target in including:
            path = " → ".join(f"`{name}`" for name in (*including, target))
            raise _error(f"files include each other: {path}", include.place)
        if not (self._root / target).is_file():
            raise _error(f"the included file `{target}` does not exist", include.place)
        return self.read(target, including)

    def _target(self, include: Include, file: str) -> str:
        folder = os.path.dirname(file)
        target = os.path.normpath(os.path.join(folder, include.path))
        outside = os.path.isabs(include.path) or os.path.relpath(target, folder or ".").split(os.sep)[0] == os.pardir
        # The text of the path is what users see; a link may still lead out of the project.
        if outside or not (self._root / target).resolve().is_relative_to(self._root):
            raise _error(
                f"expected the included file to be below the folder of `{file}`, got: `{include.path}`", include.place
            )
        return target


def _read_text(path: Path, file: str, content: bytes | None) -> str:
    try:
        return (path.read_bytes() if content is None else content).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise LoadError(f"`{file}` is not UTF-8 text: {error.reason} at byte {error.start}", file=file) from None
    except OSError as error:
        raise LoadError(f"could not read `{file}`: {error.strerror}", file=file) from None


def _merge(target: Section, included: Section) -> None:
    """Maps grow together, everything else is replaced by what was included."""
    for key, value in included.items():
        present = target.get(key)
        if isinstance(present, Section) and isinstance(value, Section):
            _merge(present, value)
        else:
            target.put(key, value, included.places[key])


def _error(message: str, place: Place) -> DefinitionError:
    return DefinitionError(message, file=place.file, line=place.line)
